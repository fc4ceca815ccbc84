#include "apps/training/block_tensors.hpp"

namespace engram {

void BlockTensors::write(const data::Block& block, Backend& backend, Allocator& allocator) {
  length = block.length;
  const auto put = [&](const std::vector<std::int32_t>& tokens, Tensor& tensor) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (!tensor || tensor.count() < count) tensor = Tensor({count}, DType::i32, backend.device(), allocator);
    backend.copy(tensor.raw(), tokens.data(), tokens.size() * sizeof tokens[0], CopyKind::host_to_device);
  };
  put(block.inputs, inputs_);
  put(block.targets, targets_);
}

BlockTensors::Rows BlockTensors::rows(std::int64_t first, std::int64_t count) const {
  const std::int64_t begin = first * length, end = begin + count * length;
  return {inputs_.rows(begin, end).view({count, length}), targets_.rows(begin, end)};
}

}  // namespace engram
