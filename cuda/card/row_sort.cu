#include "cuda/row_sort.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "cuda/card/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

template <class Key>
void sort_on_card(Step& step, const RowSort<Key>& sort) {
  if (sort.count == 0) return;
  const cudaStream_t stream = card::stream_of(step.backend());
  const auto run = [&](void* memory, std::size_t& bytes) {
    card::check(cub::DeviceRadixSort::SortPairs(memory, bytes, sort.keys, sort.sorted_keys, sort.uses, sort.sorted_uses,
                                                sort.count, 0, sort.bits, stream),
                "sort_by_row");
  };
  std::size_t bytes = 0;
  run(nullptr, bytes);  // says how much memory it needs
  const Workspace memory = step.workspace(bytes == 0 ? 1 : bytes);
  if (step.computes()) run(memory.data<void>(), bytes);
}

}  // namespace

void sort_by_row(Step& step, const RowSort<std::uint32_t>& sort) { sort_on_card(step, sort); }
void sort_by_row(Step& step, const RowSort<std::uint64_t>& sort) { sort_on_card(step, sort); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
