#include "core/kernels/softmax.hpp"

#include "cuda/elements.cuh"
#include "cuda/row_team.cuh"

namespace engram::cuda::softmax_kernels {
namespace {

/// A row is read three times, which after the first is the cache's work, and written once.
template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads)
    row_softmax(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  using C = Compute<T>;
  if (Team::row() >= rows) return;
  x += Team::row() * n;
  y += Team::row() * n;
  C largest = -static_cast<C>(INFINITY);
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) largest = Maximum{}(largest, in.value[j]);
  });
  largest = Team::maximum(largest);
  if (largest == static_cast<C>(INFINITY) || largest == -static_cast<C>(INFINITY)) {  // its places share the weight
    C places = 0;
    for_row<Team, kWidth>(n, [&](std::int64_t i) {
      const Pack<C, kWidth> in = load<kWidth>(x + i);
      for (int j = 0; j < kWidth; ++j) places += in.value[j] == largest ? C(1) : C(0);
    });
    places = Team::sum(places);
    for_row<Team, kWidth>(n, [&](std::int64_t i) {
      Pack<C, kWidth> out = load<kWidth>(x + i);
      for (int j = 0; j < kWidth; ++j) out.value[j] = out.value[j] == largest ? 1 / places : C(0);
      store(y + i, out);
    });
    return;
  }
  C sum = 0;
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) sum += std::exp(in.value[j] - largest);
  });
  sum = Team::sum(sum);
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    Pack<C, kWidth> out = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] = std::exp(out.value[j] - largest) / sum;
    store(y + i, out);
  });
}

void softmax_forward(Step& step, const Tensor& x, Tensor& y) {
  dispatch_storage(x.dtype(), "softmax", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    const std::int64_t n = x.shape()[-1], rows = x.shape().rows();
    with_row_team<T>(n, aligned_for_packs(in, out), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(rows), row_softmax<T, Team, kWidth>, in, out, rows, n);
    });
  });
}

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads)
    row_softmax_gradient(const T* y, const T* dy, TargetElements<T> dx, std::int64_t rows, std::int64_t n) {
  using C = Compute<T>;
  if (Team::row() >= rows) return;
  const std::int64_t first = Team::row() * n;
  y += first;
  dy += first;
  C dot = 0;
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<C, kWidth> out = load<kWidth>(y + i), gradient = load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) dot += out.value[j] * gradient.value[j];
  });
  dot = Team::sum(dot);
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    Pack<C, kWidth> out = load<kWidth>(y + i);
    const Pack<C, kWidth> gradient = load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] *= gradient.value[j] - dot;
    write_pack(dx, first + i, out);
  });
}

void softmax_backward(Step& step, const Tensor& y, const Tensor& dy, const Target& dx) {
  dispatch_storage(y.dtype(), "softmax", [&]<class T>() {
    const T* out = y.data<const T>();
    const T* gradient = dy.data<const T>();
    const TargetElements<T> result = dx;
    const std::int64_t n = y.shape()[-1], rows = y.shape().rows();
    with_row_team<T>(n, aligned_for_packs(out, gradient, result.data), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(rows), row_softmax_gradient<T, Team, kWidth>, out, gradient, result, rows, n);
    });
  });
}

const bool bound = kernels::softmax_forward.bind(kThisDevice, &softmax_forward) &&
                   kernels::softmax_backward.bind(kThisDevice, &softmax_backward);

}  // namespace
}  // namespace engram::cuda::softmax_kernels
