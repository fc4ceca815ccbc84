#include "core/kernels/rms_norm.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/row_team.cuh"

namespace engram::cuda::rms_norm_kernels {
namespace {

template <class T>
struct Forward {
  const T* x;
  const Compute<T>* gain;  // null: 1
  Compute<T> divisor, epsilon;
  T* y;
  Compute<T>* reciprocal;
  std::int64_t rows, n;
};

/// g = gain dy, or any other product with the gain.
template <int kWidth, class C>
__device__ __forceinline__ void times_gain(Pack<C, kWidth>& value, const C* gain, std::int64_t i) {
  if (gain == nullptr) return;
  const Pack<C, kWidth> factor = load<kWidth>(gain + i);
  for (int j = 0; j < kWidth; ++j) value.value[j] *= factor.value[j];
}

/// Threads that a multiprocessor is to hold at a time. More would leave a thread 32 registers, too few for this kernel.
constexpr int kResidentThreads = 1536;

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads, kResidentThreads / Team::kBlockThreads)
    normalise_rows(Forward<T> f) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * f.n;
  if (row >= f.rows) return;
  C squares = 0;
  for_row<Team, kWidth>(f.n, [&](std::int64_t i) {
    const Pack<C, kWidth> value = load<kWidth>(f.x + first + i);
    for (int j = 0; j < kWidth; ++j) squares += value.value[j] * value.value[j];
  });
  const C square = Team::sum(squares) / f.divisor + f.epsilon;
  const C reciprocal = square == 0 ? C(0) : C(1) / std::sqrt(square);
  for_row<Team, kWidth>(f.n, [&](std::int64_t i) {
    Pack<C, kWidth> value = load<kWidth>(f.x + first + i);
    for (int j = 0; j < kWidth; ++j) value.value[j] *= reciprocal;
    times_gain<kWidth>(value, f.gain, i);
    store(f.y + first + i, value);
  });
  if (Team::rank() == 0) f.reciprocal[row] = reciprocal;
}

void rms_norm_forward(Step& step, const Tensor& x, const Tensor& gain, double divisor, double epsilon, Tensor& y,
                      Tensor& reciprocal) {
  dispatch_storage(x.dtype(), "rms_norm", [&]<class T>() {
    using C = Compute<T>;
    const Forward<T> f{.x = x.data<const T>(),
                       .gain = gain ? gain.data<const C>() : nullptr,
                       .divisor = static_cast<C>(divisor),
                       .epsilon = static_cast<C>(epsilon),
                       .y = y.data<T>(),
                       .reciprocal = reciprocal.data<C>(),
                       .rows = x.shape().rows(),
                       .n = x.shape()[-1]};
    with_row_team<T>(f.n, aligned_for_packs(f.x, f.gain, f.y), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(f.rows), normalise_rows<T, Team, kWidth>, f);
    });
  });
}

template <class T>
struct Backward {
  const T* x;
  const Compute<T>* gain;  // null: 1
  Compute<T> divisor;
  const Compute<T>* reciprocal;
  const T* dy;
  TargetElements<T> dx;
  std::int64_t rows, n;
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads) row_gradients(Backward<T> b) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * b.n;
  if (row >= b.rows) return;
  const C reciprocal = b.reciprocal[row];
  C sum = 0;
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(b.x + first + i);
    Pack<C, kWidth> g = load<kWidth>(b.dy + first + i);
    times_gain<kWidth>(g, b.gain, i);
    for (int j = 0; j < kWidth; ++j) sum += g.value[j] * (in.value[j] * reciprocal);
  });
  const C along = Team::sum(sum) / b.divisor;
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(b.x + first + i);
    Pack<C, kWidth> g = load<kWidth>(b.dy + first + i);
    times_gain<kWidth>(g, b.gain, i);
    for (int j = 0; j < kWidth; ++j) g.value[j] = (g.value[j] - in.value[j] * reciprocal * along) * reciprocal;
    write_pack(b.dx, first + i, g);
  });
}

template <class T>
struct GainTerms {
  static constexpr int kSums = 1;
  Backward<T> b;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    const std::int64_t first = row * b.n + column;
    const Pack<Compute<T>, kWidth> dy = load<kWidth>(b.dy + first), in = load<kWidth>(b.x + first);
    for (int j = 0; j < kWidth; ++j) sums[0][j] += dy.value[j] * (in.value[j] * b.reciprocal[row]);
  }
};

void rms_norm_backward(Step& step, const Tensor& x, const Tensor& gain, double divisor, const Tensor& reciprocal,
                       const Tensor& dy, const Target& dx, const Target& dgain) {
  dispatch_storage(x.dtype(), "rms_norm", [&]<class T>() {
    using C = Compute<T>;
    const Backward<T> b{.x = x.data<const T>(),
                        .gain = gain ? gain.data<const C>() : nullptr,
                        .divisor = static_cast<C>(divisor),
                        .reciprocal = reciprocal.data<const C>(),
                        .dy = dy.data<const T>(),
                        .dx = dx,
                        .rows = x.shape().rows(),
                        .n = x.shape()[-1]};
    if (dx)
      with_row_team<T>(b.n, aligned_for_packs(b.x, b.gain, b.dy, b.dx.data), [&]<class Team, int kWidth>() {
        launch(step, row_launch<Team>(b.rows), row_gradients<T, Team, kWidth>, b);
      });
    if (dgain) column_sums<T, C>(step, aligned_for_packs(b.x, b.dy), b.rows, b.n, GainTerms<T>{b}, {dgain});
  });
}

const bool bound = kernels::rms_norm_forward.bind(kThisDevice, &rms_norm_forward) &&
                   kernels::rms_norm_backward.bind(kThisDevice, &rms_norm_backward);

}  // namespace
}  // namespace engram::cuda::rms_norm_kernels
