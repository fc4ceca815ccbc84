#include "core/kernels/layer_norm.hpp"

#include <cmath>

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

void layer_norm_forward(Step&, const Tensor& x, const Tensor& residual, const Tensor& gain, const Tensor& bias,
                        double epsilon, Tensor& sum, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    const std::int64_t n = x.shape()[-1];
    const T* in = x.data<const T>();
    const T* other = residual ? residual.data<const T>() : nullptr;
    T* total = residual ? sum.data<T>() : nullptr;
    const auto factor = vec(gain.data<const T>(), n);
    const auto offset = vec(bias.data<const T>(), n);
    T* out = y.data<T>();
    T* means = mean.data<T>();
    T* reciprocals = reciprocal_deviation.data<T>();
    parallel_chunks(x.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        if (other != nullptr) vec(total + r * n, n) = vec(in + r * n, n) + vec(other + r * n, n);
        const auto row = vec(other != nullptr ? const_cast<const T*>(total) + r * n : in + r * n, n);
        // Two passes: the difference of squares would cancel for rows far from zero.
        const T center = row.sum() / static_cast<T>(n);
        const T variance = (row - center).square().sum() / static_cast<T>(n);
        const T reciprocal = T(1) / std::sqrt(variance + static_cast<T>(epsilon));
        vec(out + r * n, n) = (row - center) * reciprocal * factor + offset;
        means[r] = center;
        reciprocals[r] = reciprocal;
      }
    });
  });
}

void layer_norm_backward(Step& step, const Tensor& sum, const Tensor& gain, const Tensor& mean,
                         const Tensor& reciprocal_deviation, const Tensor& dy, const Tensor& dsum_in, const Target& dx,
                         const Target& dgain, const Target& dbias) {
  dispatch_float(sum.dtype(), "layer_norm", [&]<class T>() {
    const std::int64_t n = sum.shape()[-1];
    const T* in = sum.data<const T>();
    const auto factor = vec(gain.data<const T>(), n);
    const T* means = mean.data<const T>();
    const T* reciprocals = reciprocal_deviation.data<const T>();
    const T* gradient = dy.data<const T>();
    const T* direct = dsum_in ? dsum_in.data<const T>() : nullptr;
    T* result = dx.data<T>();
    const bool parameters = dgain || dbias;

    const RowSumChunks chunks(sum.shape().rows());
    const Workspace memory =
        step.workspace(parameters ? static_cast<std::size_t>(chunks.count * 2 * n) * sizeof(T) : 0);
    if (!step.computes()) return;
    T* partial = memory.data<T>();  // per chunk: a row for the gain, a row for the bias
    parallel_chunks(chunks.rows, chunks.chunk, [&](std::int64_t begin, std::int64_t end) {
      T* partial_gain = parameters ? partial + begin / chunks.chunk * 2 * n : nullptr;
      if (parameters) vec(partial_gain, 2 * n) = T(0);
      for (std::int64_t r = begin; r < end; ++r) {
        const auto normalised = (vec(in + r * n, n) - means[r]) * reciprocals[r];
        const auto row = vec(gradient + r * n, n);
        if (parameters) {
          vec(partial_gain, n) += row * normalised;
          vec(partial_gain + n, n) += row;
        }
        if (result == nullptr) continue;
        const T mean_g = (row * factor).sum() / static_cast<T>(n);
        const T mean_gs = (row * factor * normalised).sum() / static_cast<T>(n);
        const auto through = (row * factor - mean_g - normalised * mean_gs) * reciprocals[r];
        auto to = vec(result + r * n, n);
        if (direct != nullptr)
          store(to, through + vec(direct + r * n, n), dx.write);
        else
          store(to, through, dx.write);
      }
    });
    if (dgain) add_partial_rows(partial, chunks.count, 2 * n, n, dgain.data<T>(), dgain.write);
    if (dbias) add_partial_rows(partial + n, chunks.count, 2 * n, n, dbias.data<T>(), dbias.write);
  });
}

const bool bound = kernels::layer_norm_forward.bind(DeviceKind::cpu, &layer_norm_forward) &&
                   kernels::layer_norm_backward.bind(DeviceKind::cpu, &layer_norm_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
