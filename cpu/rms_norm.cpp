#include "core/kernels/rms_norm.hpp"

#include <cmath>

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

void rms_norm_forward(Step&, const Tensor& x, const Tensor& gain, double divisor, double epsilon, Tensor& y,
                      Tensor& reciprocal) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    const std::int64_t n = x.shape()[-1];
    const T* in = x.data<const T>();
    const T* factor = gain ? gain.data<const T>() : nullptr;
    T* out = y.data<T>();
    T* reciprocals = reciprocal.data<T>();
    parallel_chunks(x.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto row = vec(in + r * n, n);
        const T square = row.square().sum() / static_cast<T>(divisor) + static_cast<T>(epsilon);
        reciprocals[r] = square == 0 ? T(0) : T(1) / std::sqrt(square);
        if (factor != nullptr)
          vec(out + r * n, n) = row * reciprocals[r] * vec(factor, n);
        else
          vec(out + r * n, n) = row * reciprocals[r];
      }
    });
  });
}

void rms_norm_backward(Step& step, const Tensor& x, const Tensor& gain, double divisor, const Tensor& reciprocal,
                       const Tensor& dy, const Target& dx, const Target& dgain) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    const std::int64_t n = x.shape()[-1];
    const T* in = x.data<const T>();
    const T* factor = gain ? gain.data<const T>() : nullptr;
    const T* reciprocals = reciprocal.data<const T>();
    const T* gradient = dy.data<const T>();
    T* result = dx.data<T>();

    const RowSumChunks chunks(x.shape().rows());
    const Workspace memory = step.workspace(dgain ? static_cast<std::size_t>(chunks.count * n) * sizeof(T) : 0);
    if (!step.computes()) return;
    T* partial = memory.data<T>();
    parallel_chunks(chunks.rows, chunks.chunk, [&](std::int64_t begin, std::int64_t end) {
      T* partial_gain = dgain ? partial + begin / chunks.chunk * n : nullptr;
      if (dgain) vec(partial_gain, n) = T(0);
      for (std::int64_t r = begin; r < end; ++r) {
        const auto normalised = vec(in + r * n, n) * reciprocals[r];
        const auto row = vec(gradient + r * n, n);
        if (dgain) vec(partial_gain, n) += row * normalised;
        if (result == nullptr) continue;
        auto to = vec(result + r * n, n);
        // g is an expression: with a gain, and without one.
        const auto write = [&](const auto& g) {
          const T along = (g * normalised).sum() / static_cast<T>(divisor);
          store(to, (g - normalised * along) * reciprocals[r], dx.write);
        };
        if (factor != nullptr)
          write(row * vec(factor, n));
        else
          write(row);
      }
    });
    if (dgain) add_partial_rows(partial, chunks.count, n, n, dgain.data<T>(), dgain.write);
  });
}

const bool bound = kernels::rms_norm_forward.bind(DeviceKind::cpu, &rms_norm_forward) &&
                   kernels::rms_norm_backward.bind(DeviceKind::cpu, &rms_norm_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
