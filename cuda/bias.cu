#include "core/kernels/bias.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"

namespace engram::cuda::bias_kernels {
namespace {

template <class T>
struct AddBias {
  const Compute<T>* bias;
  std::int64_t n;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    write_pack(y + i, load<kWidth>(bias + i % n), Write::add);
  }
};

void bias_forward(Step& step, const Tensor& bias, Tensor& y) {
  dispatch_storage(y.dtype(), "bias", [&]<class T>() {
    const AddBias<T> body{bias.data<const Compute<T>>(), y.shape()[-1], y.data<T>()};
    const bool in_packs = aligned_for_packs(body.bias, body.y) && body.n % kPackWidth<T> == 0;
    for_each_element<T>(step, y.count(), in_packs, body);
  });
}

template <class T>
struct GradientTerm {
  static constexpr int kSums = 1;
  const T* dy;
  std::int64_t n;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    const Pack<Compute<T>, kWidth> gradient = load<kWidth>(dy + row * n + column);
    for (int j = 0; j < kWidth; ++j) sums[0][j] += gradient.value[j];
  }
};

void bias_backward(Step& step, const Tensor& dy, const Target& dbias) {
  dispatch_storage(dy.dtype(), "bias", [&]<class T>() {
    const GradientTerm<T> terms{dy.data<const T>(), dy.shape()[-1]};
    column_sums<T, Compute<T>>(step, aligned_for_packs(terms.dy), dy.shape().rows(), terms.n, terms, {dbias});
  });
}

const bool bound =
    kernels::bias_forward.bind(kThisDevice, &bias_forward) && kernels::bias_backward.bind(kThisDevice, &bias_backward);

}  // namespace
}  // namespace engram::cuda::bias_kernels
