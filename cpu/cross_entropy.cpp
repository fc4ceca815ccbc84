#include "core/kernels/cross_entropy.hpp"

#include <cassert>
#include <cmath>

#include "cpu/exponentials.hpp"
#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

/// The loss of one row; its logits become their gradient.
template <class T>
T row_loss_and_gradient(T* logits, std::int64_t n, std::int32_t target, T weight, bool gradient) {
  assert(target >= 0 && target < n);
  auto row = vec(logits, n);
  const T largest = row.maxCoeff();
  const T chosen = logits[target];
  const T sum = exponentials(logits, n, largest);
  if (gradient) {
    // Not by multiplying: 0 * (infinity / infinity) would not be 0.
    if (weight == T(0)) {
      row = T(0);
    } else {
      row *= weight / sum;
      row[target] -= weight;
    }
  }
  return std::log(sum) + (largest - chosen);
}

void cross_entropy(Step&, Tensor& logits, const Tensor& targets, const Tensor& row_weight, bool gradient,
                   Tensor& row_loss, Tensor& loss) {
  dispatch_float(logits.dtype(), "cross_entropy", [&]<class T>() {
    const std::int64_t rows = logits.shape()[0];
    const std::int64_t n = logits.shape()[1];
    T* values = logits.data<T>();
    const std::int32_t* target = targets.data<const std::int32_t>();
    const T* weight = row_weight.data<const T>();
    T* losses = row_loss.data<T>();
    parallel_chunks(rows, row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        losses[r] = row_loss_and_gradient(values + r * n, n, target[r], weight[r], gradient);
    });
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      if (weight[r] != T(0)) total += static_cast<double>(weight[r]) * static_cast<double>(losses[r]);
    loss.data<T>()[0] = static_cast<T>(total);
  });
}

const bool bound = kernels::cross_entropy.bind(DeviceKind::cpu, &cross_entropy);

}  // namespace
}  // namespace engram::cpu
