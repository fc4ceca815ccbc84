#include "apps/training/block_tensors.hpp"

namespace engram {

BlockTensors block_tensors(Step& step, const data::Block& block, std::int64_t first, std::int64_t rows) {
  BlockTensors tensors{step.empty({rows, block.length}, DType::i32), step.empty({rows * block.length}, DType::i32)};
  const std::int64_t begin = first * block.length;
  step.backend().copy(tensors.inputs.raw(), block.inputs.data() + begin, tensors.inputs.bytes(),
                      CopyKind::host_to_device);
  step.backend().copy(tensors.targets.raw(), block.targets.data() + begin, tensors.targets.bytes(),
                      CopyKind::host_to_device);
  return tensors;
}

}  // namespace engram
