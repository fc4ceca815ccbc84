#include "core/kernels/multiply.hpp"

#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

void multiply(Step&, const Tensor& a, const Tensor& b, const Target& y) {
  dispatch_float(y.tensor.dtype(), "multiply", [&]<class T>() {
    const T* left = a.data<const T>();
    const T* right = b.data<const T>();
    T* out = y.data<T>();
    if (b.count() == a.count()) {
      parallel_chunks(y.tensor.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t n = end - begin;
        store(vec(out + begin, n), vec(left + begin, n) * vec(right + begin, n), y.write);
      });
      return;
    }
    const std::int64_t n = y.tensor.shape()[-1];
    parallel_chunks(y.tensor.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) store(vec(out + r * n, n), vec(left + r * n, n) * right[r], y.write);
    });
  });
}

void row_dots(Step&, const Tensor& a, const Tensor& b, const Target& y) {
  dispatch_float(y.tensor.dtype(), "row_dots", [&]<class T>() {
    const std::int64_t n = a.shape()[-1];
    const T* left = a.data<const T>();
    const T* right = b.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(a.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T dot = (vec(left + r * n, n) * vec(right + r * n, n)).sum();
        out[r] = y.write == Write::add ? out[r] + dot : dot;
      }
    });
  });
}

const bool bound =
    kernels::multiply.bind(DeviceKind::cpu, &multiply) && kernels::row_dots.bind(DeviceKind::cpu, &row_dots);

}  // namespace
}  // namespace engram::cpu
