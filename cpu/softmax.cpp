#include "core/kernels/softmax.hpp"

#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "cpu/exponentials.hpp"
#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

/// Of a row whose largest element is no finite number: the places of the infinite maximum share the weight, and a NaN
/// makes the row NaN.
template <class T, class Source>
void share_among_largest(const Source& source, T largest, T* out) {
  auto row = vec(out, source.size());
  if (source.isNaN().any())
    row = std::numeric_limits<T>::quiet_NaN();
  else
    row = (source == largest).template cast<T>() / static_cast<T>((source == largest).count());
}

void softmax_forward(Step&, const Tensor& x, Tensor& y) {
  dispatch_float(x.dtype(), "softmax", [&]<class T>() {
    const std::int64_t n = x.shape()[-1];
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        auto row = vec(out + r * n, n);
        const auto source = vec(in + r * n, n);
        const T largest = source.maxCoeff();
        if (!std::isfinite(largest)) {
          share_among_largest(source, largest, row.data());
          continue;
        }
        row = source;
        row /= exponentials(row.data(), n, largest);
      }
    });
  });
}

void softmax_backward(Step&, const Tensor& y, const Tensor& dy, const Target& dx) {
  dispatch_float(y.dtype(), "softmax", [&]<class T>() {
    const std::int64_t n = y.shape()[-1];
    const T* out = y.data<const T>();
    const T* gradient = dy.data<const T>();
    T* result = dx.data<T>();
    parallel_chunks(y.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto p = vec(out + r * n, n);
        const auto g = vec(gradient + r * n, n);
        const T dot = (p * g).sum();
        store(vec(result + r * n, n), p * (g - dot), dx.write);
      }
    });
  });
}

const bool bound = kernels::softmax_forward.bind(DeviceKind::cpu, &softmax_forward) &&
                   kernels::softmax_backward.bind(DeviceKind::cpu, &softmax_backward);

}  // namespace
}  // namespace engram::cpu
