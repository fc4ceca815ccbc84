#include "core/kernels/reduce.hpp"

#include "cuda/elements.cuh"
#include "cuda/ordered_sum.cuh"

namespace engram::cuda::reduce_kernels {
namespace {

template <class T>
struct Element {
  const T* x;

  __device__ double operator()(std::int64_t i) const { return static_cast<double>(static_cast<Compute<T>>(x[i])); }
};
template <class T>
struct StoreScaled {
  double factor;
  T* y;

  __device__ void operator()(double sum) const { y[0] = static_cast<T>(factor * sum); }
};

void sum_forward(Step& step, const Tensor& x, double factor, Tensor& y) {
  dispatch_storage(x.dtype(), "sum", [&]<class T>() {
    using C = Compute<T>;
    ordered_sum(step, x.count(), Element<T>{x.data<const T>()}, StoreScaled<C>{factor, y.data<C>()});
  });
}

template <class T>
struct SpreadGradient {
  const Compute<T>* dy;
  double factor;
  TargetElements<T> dx;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const auto gradient = static_cast<Compute<T>>(factor * static_cast<double>(dy[0]));
    Pack<Compute<T>, kWidth> out;
    for (int j = 0; j < kWidth; ++j) out.value[j] = gradient;
    write_pack(dx, i, out);
  }
};

void sum_backward(Step& step, const Tensor& dy, double factor, const Target& dx) {
  dispatch_storage(dx.tensor.dtype(), "sum", [&]<class T>() {
    const SpreadGradient<T> body{dy.data<const Compute<T>>(), factor, dx};
    for_each_element<T>(step, dx.tensor.count(), aligned_for_packs(body.dx.data), body);
  });
}

const bool bound =
    kernels::sum_forward.bind(kThisDevice, &sum_forward) && kernels::sum_backward.bind(kThisDevice, &sum_backward);

}  // namespace
}  // namespace engram::cuda::reduce_kernels
