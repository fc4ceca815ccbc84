#include "core/kernels/pointwise.hpp"

#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

/// The formula element by element: the compiler vectorises it when it has no library function.
template <class F, class T>
void values(F, const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = F::value(x[i]);
}
/// Eigen's vectorised exp is exact to about one unit in the last place in both dtypes.
template <class T>
void values(Sigmoid, const T* x, T* y, std::int64_t count) {
  vec(y, count) = (T(1) + (-vec(x, count)).exp()).inverse();
}
template <class T>
void values(Silu, const T* x, T* y, std::int64_t count) {
  vec(y, count) = vec(x, count) / (T(1) + (-vec(x, count)).exp());
}
/// Eigen vectorises tanh for float only.
void values(Tanh, const float* x, float* y, std::int64_t count) { vec(y, count) = vec(x, count).tanh(); }

template <class F>
void forward(Step&, const Tensor& x, Tensor& y) {
  dispatch_float(x.dtype(), F::name, [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.count(), kElementChunk,
                    [&](std::int64_t begin, std::int64_t end) { values(F{}, in + begin, out + begin, end - begin); });
  });
}

template <class F>
void backward(Step&, const Tensor& x, const Tensor& y, const Tensor& dy, const Target& dx) {
  dispatch_float(dx.tensor.dtype(), F::name, [&]<class T>() {
    const T* in = x.data<const T>();
    const T* out = y.data<const T>();
    const T* gradient = dy.data<const T>();
    T* result = dx.data<T>();
    parallel_chunks(dx.tensor.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      if (dx.write == Write::add)
        for (std::int64_t i = begin; i < end; ++i) result[i] += F::derivative(in[i], out[i]) * gradient[i];
      else
        for (std::int64_t i = begin; i < end; ++i) result[i] = F::derivative(in[i], out[i]) * gradient[i];
    });
  });
}

template <class... F>
bool bind_all(TypeList<F...>) {
  return ((kernels::pointwise_forward<F>.bind(DeviceKind::cpu, &forward<F>) &&
           kernels::pointwise_backward<F>.bind(DeviceKind::cpu, &backward<F>)) &&
          ...);
}
const bool bound = bind_all(Activations{});

}  // namespace
}  // namespace engram::cpu
