#include "core/kernels/pointwise.hpp"

#include <algorithm>
#include <unsupported/Eigen/SpecialFunctions>

#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"
#include "cpu/vector_bytes.hpp"

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

/// A vector's floats. Eigen vectorises erf for float, exact to some units in the last place; std::erf takes twenty
/// times as long.
constexpr std::int64_t kLanes = kVectorBytes / sizeof(float);
using Floats = Eigen::Array<float, kLanes, 1>;
/// Elements in whole vectors, the last ones by way of copies: so an element's bits do not depend on where it lies.
template <class Formula>
void by_vectors(std::int64_t count, const Formula& formula) {
  for (std::int64_t i = 0; i < count; i += kLanes) formula(i, std::min(kLanes, count - i));
}
Floats load(const float* from, std::int64_t count) {
  if (count == kLanes) return Eigen::Map<const Floats>(from);
  Floats lanes = Floats::Zero();
  std::copy_n(from, count, lanes.data());
  return lanes;
}
Floats distribution(const Floats& x) { return 0.5f * (1.0f + (x * 0.70710678118654752440f).erf()); }

void values(Gelu, const float* x, float* y, std::int64_t count) {
  by_vectors(count, [&](std::int64_t i, std::int64_t lanes) {
    const Floats at = load(x + i, lanes), value = at * distribution(at);
    std::copy_n(value.data(), lanes, y + i);
  });
}

/// dx (set or add) = derivative times dy.
template <class F, class T>
void derivatives(F, const T* x, const T* y, const T* dy, T* dx, std::int64_t count, Write write) {
  if (write == Write::add)
    for (std::int64_t i = 0; i < count; ++i) dx[i] += F::derivative(x[i], y[i]) * dy[i];
  else
    for (std::int64_t i = 0; i < count; ++i) dx[i] = F::derivative(x[i], y[i]) * dy[i];
}
void derivatives(Gelu, const float* x, const float*, const float* dy, float* dx, std::int64_t count, Write write) {
  by_vectors(count, [&](std::int64_t i, std::int64_t lanes) {
    const Floats at = load(x + i, lanes), density = 0.39894228040143267794f * (-0.5f * at * at).exp();
    Floats gradient = (distribution(at) + at * density) * load(dy + i, lanes);
    if (write == Write::add) gradient += load(dx + i, lanes);
    std::copy_n(gradient.data(), lanes, dx + i);
  });
}

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
      derivatives(F{}, in + begin, out + begin, gradient + begin, result + begin, end - begin, dx.write);
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
