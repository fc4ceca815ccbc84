#include "core/kernels/bias.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"

namespace engram::cuda {
namespace {

template <class T>
struct AddBias {
  const T* bias;
  std::int64_t n;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    write_pack(y + i, load<kWidth>(bias + i % n), Write::add);
  }
};

void bias_forward(Step& step, const Tensor& bias, Tensor& y) {
  dispatch_float(y.dtype(), "bias", [&]<class T>() {
    const AddBias<T> body{bias.data<const T>(), y.shape()[-1], y.data<T>()};
    const bool in_packs = aligned_for_packs(body.bias, body.y) && body.n % kPackWidth<T> == 0;
    for_each_element<T>(step, y.count(), in_packs, body);
  });
}

template <class T>
struct GradientTerm {
  static constexpr int kSums = 1;
  const T* dy;
  std::int64_t n;

  __device__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[kSums]) const {
    sums[0] += dy[row * n + column];
  }
};

void bias_backward(Step& step, const Tensor& dy, Tensor& dbias, Write write) {
  dispatch_float(dy.dtype(), "bias", [&]<class T>() {
    const std::int64_t n = dy.shape()[-1];
    column_sums<T>(step, dy.shape().rows(), n, GradientTerm<T>{dy.data<const T>(), n}, {dbias.data<T>()}, {write});
  });
}

const bool bound =
    kernels::bias_forward.bind(kThisDevice, &bias_forward) && kernels::bias_backward.bind(kThisDevice, &bias_backward);

}  // namespace
}  // namespace engram::cuda
