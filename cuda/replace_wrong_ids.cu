#include "core/kernels/replace_wrong_ids.hpp"

#include "core/wrong_ids.hpp"
#include "cuda/elements.cuh"

namespace engram::cuda::replace_wrong_ids_kernels {
namespace {

struct ReplaceWrongIds {
  std::int64_t below, first_place;  // the lookup's report for place 0
  std::int64_t* ids;
  unsigned long long* report;

  template <int kWidth>
  __device__ void run(std::int64_t place) const {
    const std::int64_t id = ids[place];
    if (id >= 0 && id < below) return;
    ids[place] = 0;
    // No report is negative, so that their order is that of unsigned numbers.
    atomicMin(report, static_cast<unsigned long long>(first_place + place));
  }
};

void replace_wrong_ids(Step& step, std::int64_t below, std::int64_t lookup, Tensor& ids, Tensor& report) {
  launch_elements<1>(step, ids.count(),
                     ReplaceWrongIds{below, lookup << WrongIds::kPlaceBits, ids.data<std::int64_t>(),
                                     reinterpret_cast<unsigned long long*>(report.data<std::int64_t>())});
}

const bool bound = kernels::replace_wrong_ids.bind(kThisDevice, &replace_wrong_ids);

}  // namespace
}  // namespace engram::cuda::replace_wrong_ids_kernels
