#include "core/kernels/pointwise.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda::pointwise_kernels {
namespace {

template <class F, class T>
struct Value {
  const T* x;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<T>, kWidth> out = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] = F::value(out.value[j]);
    store(y + i, out);
  }
};

template <class F>
void forward(Step& step, const Tensor& x, Tensor& y) {
  dispatch_storage(x.dtype(), F::name, [&]<class T>() {
    const Value<F, T> body{x.data<const T>(), y.data<T>()};
    for_each_element<T>(step, x.count(), aligned_for_packs(body.x, body.y), body);
  });
}

template <class F, class T>
struct Derivative {
  const T* x;
  const T* y;
  const T* dy;
  TargetElements<T> dx;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const Pack<Compute<T>, kWidth> in = load<kWidth>(x + i), out = load<kWidth>(y + i);
    Pack<Compute<T>, kWidth> gradient = load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) gradient.value[j] *= F::derivative(in.value[j], out.value[j]);
    write_pack(dx, i, gradient);
  }
};

template <class F>
void backward(Step& step, const Tensor& x, const Tensor& y, const Tensor& dy, const Target& dx) {
  dispatch_storage(dx.tensor.dtype(), F::name, [&]<class T>() {
    const Derivative<F, T> body{x.data<const T>(), y.data<const T>(), dy.data<const T>(), dx};
    for_each_element<T>(step, dx.tensor.count(), aligned_for_packs(body.x, body.y, body.dy, body.dx.data), body);
  });
}

template <class... F>
bool bind_all(TypeList<F...>) {
  return ((kernels::pointwise_forward<F>.bind(kThisDevice, &forward<F>) &&
           kernels::pointwise_backward<F>.bind(kThisDevice, &backward<F>)) &&
          ...);
}
const bool bound = bind_all(Activations{});

}  // namespace
}  // namespace engram::cuda::pointwise_kernels
