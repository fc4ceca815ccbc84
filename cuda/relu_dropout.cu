#include "core/kernels/relu_dropout.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"

namespace engram::cuda::relu_dropout_kernels {
namespace {

template <class T>
struct Forward {
  const T* x;
  const Compute<T>* bias;
  std::int64_t n;
  RandomStream random;
  DropoutRule rule;
  T* y;

  /// One Philox block decides for the eight elements that a thread has.
  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    using C = Compute<T>;
    const PhiloxBlock bits = random.draw(static_cast<std::uint64_t>(i) / DropoutRule::kElementsPerBlock);
    const int first = static_cast<int>(i % DropoutRule::kElementsPerBlock);
    const std::int64_t column = i % n;
    constexpr int kPack = kWidth < kPackWidth<T> ? kWidth : kPackWidth<T>;
    const auto multiplier = static_cast<C>(rule.multiplier);
    for (int part = 0; part < kWidth; part += kPack) {
      Pack<C, kPack> out = load<kPack>(x + i + part);
      const Pack<C, kPack> offset = load<kPack>(bias + column + part);
      for (int j = 0; j < kPack; ++j) {
        const C sum = out.value[j] + offset.value[j];
        // A dropped element is 0 even where the sum is infinite.
        out.value[j] = sum > C(0) && rule.keeps(bits, first + part + j) ? sum * multiplier : C(0);
      }
      store(y + i + part, out);
    }
  }
};

void relu_dropout_forward(Step& step, const Tensor& x, const Tensor& bias, RandomStream random, DropoutRule rule,
                          Tensor& y) {
  dispatch_storage(x.dtype(), "relu_dropout", [&]<class T>() {
    const Forward<T> body{x.data<const T>(), bias.data<const Compute<T>>(), x.shape()[-1], random, rule, y.data<T>()};
    constexpr int kInBlock = DropoutRule::kElementsPerBlock;
    if (body.n % kInBlock == 0 && aligned_for_packs(body.x, body.bias, body.y))
      launch_elements<kInBlock>(step, x.count(), body);
    else
      launch_elements<1>(step, x.count(), body);
  });
}

template <class T>
struct Backward {
  const T* y;
  const T* dy;
  Compute<T> multiplier;
  T* dx;

  template <int kWidth>
  __device__ Pack<Compute<T>, kWidth> run(std::int64_t i) const {
    const Pack<Compute<T>, kWidth> out = load<kWidth>(y + i);
    Pack<Compute<T>, kWidth> gradient = load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j)
      gradient.value[j] = out.value[j] > Compute<T>(0) ? gradient.value[j] * multiplier : Compute<T>(0);
    store(dx + i, gradient);
    return gradient;
  }
};

/// The same, and what a row and column give to the bias.
template <class T>
struct BackwardTerms {
  static constexpr int kSums = 1;
  Backward<T> gradients;
  std::int64_t n;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    const Pack<Compute<T>, kWidth> gradient = gradients.template run<kWidth>(row * n + column);
    for (int j = 0; j < kWidth; ++j) sums[0][j] += gradient.value[j];
  }
};

void relu_dropout_backward(Step& step, const Tensor& y, const Tensor& dy, DropoutRule rule, Tensor& dx,
                           const Target& dbias) {
  dispatch_storage(y.dtype(), "relu_dropout", [&]<class T>() {
    using C = Compute<T>;
    const Backward<T> body{y.data<const T>(), dy.data<const T>(), static_cast<C>(rule.multiplier), dx.data<T>()};
    const bool in_packs = aligned_for_packs(body.y, body.dy, body.dx);
    if (dbias)
      column_sums<T, C>(step, in_packs, y.shape().rows(), y.shape()[-1], BackwardTerms<T>{body, y.shape()[-1]},
                        {dbias});
    else
      for_each_element<T>(step, y.count(), in_packs, body);
  });
}

const bool bound = kernels::relu_dropout_forward.bind(kThisDevice, &relu_dropout_forward) &&
                   kernels::relu_dropout_backward.bind(kThisDevice, &relu_dropout_backward);

}  // namespace
}  // namespace engram::cuda::relu_dropout_kernels
