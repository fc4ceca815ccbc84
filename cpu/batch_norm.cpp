#include "core/kernels/batch_norm.hpp"

#include <cmath>

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

/// The rows of x, and which of them take part.
template <class T>
struct Rows {
  const T* x;
  const std::int32_t* mask;  // null: all do
  std::int64_t count, n;

  Rows(const Tensor& tensor, const Tensor& included)
      : x(tensor.data<const T>()),
        mask(included ? included.data<const std::int32_t>() : nullptr),
        count(tensor.shape().rows()),
        n(tensor.shape()[-1]) {}
  bool masked(std::int64_t r) const { return mask != nullptr && mask[r] == 0; }
  auto row(std::int64_t r) const { return vec(x + r * n, n); }

  /// sums[n * vectors] = the sum over the rows that take part of what term(r, to) adds to its n * vectors numbers.
  template <class Term>
  void sum(Step& step, std::int64_t vectors, T* sums, const Term& term) const {
    const RowSumChunks chunks(count);
    const std::int64_t width = n * vectors;
    const Workspace memory = step.workspace(static_cast<std::size_t>(chunks.count * width) * sizeof(T));
    if (!step.computes()) return;
    T* partial = memory.data<T>();
    parallel_chunks(count, chunks.chunk, [&](std::int64_t begin, std::int64_t end) {
      T* to = partial + begin / chunks.chunk * width;
      vec(to, width) = T(0);
      for (std::int64_t r = begin; r < end; ++r)
        if (!masked(r)) term(r, to);
    });
    add_partial_rows(partial, chunks.count, width, width, sums, Write::set);
  }
};

/// y = (x - mean) factor + bias.
template <class T>
void normalise(const Rows<T>& rows, const T* mean, const T* factor, const T* bias, T* y) {
  const std::int64_t n = rows.n;
  parallel_chunks(rows.count, row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      if (rows.masked(r))
        vec(y + r * n, n) = T(0);
      else
        vec(y + r * n, n) = (rows.row(r) - vec(mean, n)) * vec(factor, n) + vec(bias, n);
    }
  });
}

void batch_norm_training(Step& step, const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                         const Tensor& bias, double epsilon, double momentum, Tensor& running_mean,
                         Tensor& running_variance, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation) {
  dispatch_float(x.dtype(), "batch_norm", [&]<class T>() {
    const Rows<T> rows(x, mask);
    const std::int64_t n = rows.n;
    const T share = T(1) / static_cast<T>(std::max<std::int64_t>(1, count));  // of a row in a mean
    const auto center = vec(mean.data<T>(), n);
    const Workspace memory = step.workspace(static_cast<std::size_t>(3 * n) * sizeof(T));
    T* const distances = memory.data<T>();
    auto shift = vec(distances, n), variance = vec(distances + n, n), factor = vec(distances + 2 * n, n);
    rows.sum(step, 1, mean.data<T>(), [&](std::int64_t r, T* to) { vec(to, n) += rows.row(r) * share; });
    // A second pass, about a mean that is nearly right: the difference of squares would cancel for features far from
    // zero. What is left of the distances corrects the mean.
    rows.sum(step, 2, distances, [&](std::int64_t r, T* to) {
      vec(to, n) += (rows.row(r) - center) * share;
      vec(to + n, n) += (rows.row(r) - center).square() * share;
    });
    if (!step.computes()) return;
    vec(mean.data<T>(), n) += shift;
    variance -= shift.square();
    variance = (variance < T(0)).select(T(0), variance);  // a NaN stays one
    if (count > 1) {
      const T old = static_cast<T>(1 - momentum), fresh = static_cast<T>(momentum);
      const T unbiased = static_cast<T>(static_cast<double>(count) / static_cast<double>(count - 1));
      auto means = vec(running_mean.data<T>(), n), variances = vec(running_variance.data<T>(), n);
      means = old * means + fresh * center;
      variances = old * variances + fresh * (variance * unbiased);
    }
    auto reciprocal = vec(reciprocal_deviation.data<T>(), n);
    reciprocal = (variance + static_cast<T>(epsilon)).sqrt().inverse();
    factor = vec(gain.data<const T>(), n) * reciprocal;
    normalise(rows, mean.data<const T>(), distances + 2 * n, bias.data<const T>(), y.data<T>());
  });
}

void batch_norm_inference(Step& step, const Tensor& x, const Tensor& mask, const Tensor& gain, const Tensor& bias,
                          const Tensor& running_mean, const Tensor& running_variance, double epsilon, Tensor& y) {
  dispatch_float(x.dtype(), "batch_norm", [&]<class T>() {
    const Rows<T> rows(x, mask);
    const Workspace memory = step.workspace(static_cast<std::size_t>(rows.n) * sizeof(T));
    if (!step.computes()) return;
    T* const factor = memory.data<T>();
    vec(factor, rows.n) = vec(gain.data<const T>(), rows.n) *
                          (vec(running_variance.data<const T>(), rows.n) + static_cast<T>(epsilon)).sqrt().inverse();
    normalise(rows, running_mean.data<const T>(), factor, bias.data<const T>(), y.data<T>());
  });
}

void batch_norm_backward(Step& step, const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                         const Tensor& mean, const Tensor& reciprocal_deviation, const Tensor& dy, const Target& dx,
                         const Target& dgain, const Target& dbias) {
  dispatch_float(x.dtype(), "batch_norm", [&]<class T>() {
    const Rows<T> rows(x, mask);
    const std::int64_t n = rows.n;
    const auto center = vec(mean.data<const T>(), n), reciprocal = vec(reciprocal_deviation.data<const T>(), n);
    const T* gradient = dy.data<const T>();
    const Workspace memory = step.workspace(static_cast<std::size_t>(2 * n) * sizeof(T));
    T* const sums = memory.data<T>();
    rows.sum(step, 2, sums, [&](std::int64_t r, T* to) {
      vec(to, n) += vec(gradient + r * n, n) * ((rows.row(r) - center) * reciprocal);
      vec(to + n, n) += vec(gradient + r * n, n);
    });
    if (!step.computes()) return;
    if (dgain) store(vec(dgain.data<T>(), n), vec(sums, n), dgain.write);
    if (dbias) store(vec(dbias.data<T>(), n), vec(sums + n, n), dbias.write);
    if (!dx) return;
    const T share = T(1) / static_cast<T>(std::max<std::int64_t>(1, count));
    vec(sums, 2 * n) *= share;
    const auto of_gain = vec(sums, n), of_bias = vec(sums + n, n);
    const auto factor = vec(gain.data<const T>(), n);
    T* result = dx.data<T>();
    parallel_chunks(rows.count, row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        auto to = vec(result + r * n, n);
        if (!rows.masked(r)) {
          const auto normalised = (rows.row(r) - center) * reciprocal;
          store(to, (vec(gradient + r * n, n) - of_bias - normalised * of_gain) * (factor * reciprocal), dx.write);
        } else if (dx.write == Write::set) {
          to = T(0);
        }
      }
    });
  });
}

const bool bound =
    kernels::batch_norm_training.bind(DeviceKind::cpu, &batch_norm_training, KernelMemory::workspace) &&
    kernels::batch_norm_inference.bind(DeviceKind::cpu, &batch_norm_inference, KernelMemory::workspace) &&
    kernels::batch_norm_backward.bind(DeviceKind::cpu, &batch_norm_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
