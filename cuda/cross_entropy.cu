#include "core/kernels/cross_entropy.hpp"

#include "cuda/ordered_sum.cuh"
#include "cuda/row_team.cuh"

namespace engram::cuda::cross_entropy_kernels {
namespace {

/// Logits become their gradient in place.
template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads)
    row_losses(T* logits, const std::int32_t* targets, const T* weights, bool gradient, T* losses, std::int64_t rows,
               std::int64_t n) {
  const std::int64_t row = Team::row();
  if (row >= rows) return;
  logits += row * n;
  const std::int64_t target = targets[row];
  const T weight = weights[row];
  T largest = -static_cast<T>(INFINITY);
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<T, kWidth> in = load<kWidth>(logits + i);
    for (int j = 0; j < kWidth; ++j) largest = Maximum{}(largest, in.value[j]);
  });
  largest = Team::maximum(largest);
  T sum = 0;
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<T, kWidth> in = load<kWidth>(logits + i);
    for (int j = 0; j < kWidth; ++j) sum += std::exp(in.value[j] - largest);
  });
  sum = Team::sum(sum);
  if (Team::rank() == 0) losses[row] = std::log(sum) + (largest - logits[target]);
  if (!gradient) return;
  Team::barrier();  // the target's logit was read
  const T scale = weight / sum;
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    Pack<T, kWidth> value = load<kWidth>(logits + i);
    for (int j = 0; j < kWidth; ++j) {
      const T share = std::exp(value.value[j] - largest) * scale - (i + j == target ? weight : T(0));
      value.value[j] = weight == T(0) ? T(0) : share;  // whatever the logits are
    }
    store(logits + i, value);
  });
}

template <class T>
struct WeightedLoss {
  const T* weights;
  const T* losses;

  __device__ double operator()(std::int64_t row) const {
    return weights[row] == T(0) ? 0.0 : static_cast<double>(weights[row]) * static_cast<double>(losses[row]);
  }
};
template <class T>
struct StoreLoss {
  T* loss;

  __device__ void operator()(double sum) const { loss[0] = static_cast<T>(sum); }
};

void cross_entropy(Step& step, Tensor& logits, const Tensor& targets, const Tensor& row_weight, bool gradient,
                   Tensor& row_loss, Tensor& loss) {
  dispatch_float(logits.dtype(), "cross_entropy", [&]<class T>() {
    const std::int64_t rows = logits.shape()[0], n = logits.shape()[1];
    T* values = logits.data<T>();
    const T* weights = row_weight.data<const T>();
    T* losses = row_loss.data<T>();
    with_row_team<T>(n, aligned_for_packs(values), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(rows), row_losses<T, Team, kWidth>, values, targets.data<const std::int32_t>(),
             weights, gradient, losses, rows, n);
    });
    ordered_sum(step, rows, WeightedLoss<T>{weights, losses}, StoreLoss<T>{loss.data<T>()});
  });
}

const bool bound = kernels::cross_entropy.bind(kThisDevice, &cross_entropy);

}  // namespace
}  // namespace engram::cuda::cross_entropy_kernels
