#include "core/kernels/multiply.hpp"

#include "cuda/elements.cuh"
#include "cuda/row_team.cuh"

namespace engram::cuda::multiply_kernels {
namespace {

template <class T>
struct Multiply {
  const T* a;
  const T* b;
  TargetElements<T> y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<T>, kWidth> product = load<kWidth>(a + i);
    const Pack<Compute<T>, kWidth> other = load<kWidth>(b + i);
    for (int j = 0; j < kWidth; ++j) product.value[j] *= other.value[j];
    write_pack(y, i, product);
  }
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads)
    multiply_rows(const T* a, const T* b, TargetElements<T> y, std::int64_t rows, std::int64_t n) {
  if (Team::row() >= rows) return;
  const std::int64_t first = Team::row() * n;
  const Compute<T> factor = load<1>(b + Team::row()).value[0];
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    Pack<Compute<T>, kWidth> out = load<kWidth>(a + first + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] *= factor;
    write_pack(y, first + i, out);
  });
}

void multiply(Step& step, const Tensor& a, const Tensor& b, const Target& y) {
  dispatch_storage(y.tensor.dtype(), "multiply", [&]<class T>() {
    const T* left = a.data<const T>();
    const T* right = b.data<const T>();
    const TargetElements<T> out = y;
    if (b.count() == a.count()) {
      const Multiply<T> body{left, right, out};
      for_each_element<T>(step, y.tensor.count(), aligned_for_packs(left, right, out.data), body);
      return;
    }
    const std::int64_t n = y.tensor.shape()[-1], rows = y.tensor.shape().rows();
    with_row_team<T>(n, aligned_for_packs(left, out.data), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(rows), multiply_rows<T, Team, kWidth>, left, right, out, rows, n);
    });
  });
}

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads)
    dot_rows(const T* a, const T* b, TargetElements<T> y, std::int64_t rows, std::int64_t n) {
  using C = Compute<T>;
  if (Team::row() >= rows) return;
  const std::int64_t first = Team::row() * n;
  C dot = 0;
  for_row<Team, kWidth>(n, [&](std::int64_t i) {
    const Pack<C, kWidth> left = load<kWidth>(a + first + i), right = load<kWidth>(b + first + i);
    for (int j = 0; j < kWidth; ++j) dot += left.value[j] * right.value[j];
  });
  dot = Team::sum(dot);
  if (Team::rank() != 0) return;
  Pack<C, 1> out;
  out.value[0] = dot;
  write_pack(y, Team::row(), out);
}

void row_dots(Step& step, const Tensor& a, const Tensor& b, const Target& y) {
  dispatch_storage(y.tensor.dtype(), "row_dots", [&]<class T>() {
    const T* left = a.data<const T>();
    const T* right = b.data<const T>();
    const std::int64_t n = a.shape()[-1], rows = a.shape().rows();
    with_row_team<T>(n, aligned_for_packs(left, right), [&]<class Team, int kWidth>() {
      launch(step, row_launch<Team>(rows), dot_rows<T, Team, kWidth>, left, right, y, rows, n);
    });
  });
}

const bool bound = kernels::multiply.bind(kThisDevice, &multiply) && kernels::row_dots.bind(kThisDevice, &row_dots);

}  // namespace
}  // namespace engram::cuda::multiply_kernels
