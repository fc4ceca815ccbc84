#include "core/kernels/batch_norm.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"

namespace engram::cuda::batch_norm_kernels {
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
  __device__ bool masked(std::int64_t row) const { return mask != nullptr && mask[row] == 0; }
};

template <class T>
struct MeanTerms {
  static constexpr int kSums = 1;
  Rows<T> rows;
  Compute<T> share;  // of a row in a mean

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    if (rows.masked(row)) return;
    const Pack<Compute<T>, kWidth> in = load<kWidth>(rows.x + row * rows.n + column);
    for (int j = 0; j < kWidth; ++j) sums[0][j] += in.value[j] * share;
  }
};

/// Of the distances from a mean that is nearly right, and of their squares.
template <class T>
struct DistanceTerms {
  static constexpr int kSums = 2;
  Rows<T> rows;
  Compute<T> share;
  const Compute<T>* mean;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    if (rows.masked(row)) return;
    const Pack<Compute<T>, kWidth> in = load<kWidth>(rows.x + row * rows.n + column),
                                   center = load<kWidth>(mean + column);
    for (int j = 0; j < kWidth; ++j) {
      const Compute<T> distance = in.value[j] - center.value[j];
      sums[0][j] += distance * share;
      sums[1][j] += distance * distance * share;
    }
  }
};

/// Of the gain and of the bias.
template <class T>
struct ParameterTerms {
  static constexpr int kSums = 2;
  Rows<T> rows;
  const T* dy;
  const Compute<T>* mean;
  const Compute<T>* reciprocal;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    using C = Compute<T>;
    if (rows.masked(row)) return;
    const std::int64_t first = row * rows.n + column;
    const Pack<C, kWidth> in = load<kWidth>(rows.x + first), gradient = load<kWidth>(dy + first);
    const Pack<C, kWidth> center = load<kWidth>(mean + column), factor = load<kWidth>(reciprocal + column);
    for (int j = 0; j < kWidth; ++j) {
      sums[0][j] += gradient.value[j] * ((in.value[j] - center.value[j]) * factor.value[j]);
      sums[1][j] += gradient.value[j];
    }
  }
};

/// From the mean distances and their mean squares: mean, deviation, and the running statistics.
template <class C>
struct Statistics {
  const C* distances;  // [2, n]
  std::int64_t count, n;
  C epsilon, old_share, new_share, unbiased;
  C *mean, *reciprocal, *running_mean, *running_variance;
};

template <class C>
__global__ void __launch_bounds__(256) finish_statistics(Statistics<C> s) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (column >= s.n) return;
  // What is left of the distances corrects the mean.
  const C shift = s.distances[column], square = s.distances[s.n + column] - shift * shift;
  const C mean = s.mean[column] + shift, variance = square > 0 || square != square ? square : C(0);
  s.mean[column] = mean;
  s.reciprocal[column] = C(1) / std::sqrt(variance + s.epsilon);
  if (s.count <= 1) return;
  s.running_mean[column] = s.old_share * s.running_mean[column] + s.new_share * mean;
  s.running_variance[column] = s.old_share * s.running_variance[column] + s.new_share * (variance * s.unbiased);
}

constexpr int kBlockRows = 64;  // of the blocks below, whose threads keep their columns

/// Blocks of kBlockRows rows and kSumColumns kWidth columns.
template <int kWidth, class T>
LaunchSize column_blocks(const Rows<T>& rows) {
  constexpr std::int64_t kColumns = kSumColumns * kWidth;
  return {.blocks = {(rows.count + kBlockRows - 1) / kBlockRows, (rows.n + kColumns - 1) / kColumns},
          .threads = {kSumColumns, kSumRows}};
}
template <int kWidth>
__device__ std::int64_t block_column() {
  return (static_cast<std::int64_t>(blockIdx.y) * kSumColumns + threadIdx.x) * kWidth;
}
/// Calls body(row) for this thread's rows of the block.
template <class Body>
__device__ void for_block_rows(std::int64_t rows, Body body) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kBlockRows;
  const std::int64_t end = begin + kBlockRows < rows ? begin + kBlockRows : rows;
  for (std::int64_t row = begin + threadIdx.y; row < end; row += kSumRows) body(row);
}

/// Calls body.operator()<kWidth>() with the columns of a thread.
template <class T, class Body>
void with_width(bool in_packs, std::int64_t n, Body&& body) {
  if constexpr (kSumWidth < T >> 1) {
    if (in_packs && n % kSumWidth<T> == 0) {
      body.template operator()<kSumWidth<T>>();
      return;
    }
  }
  body.template operator()<1>();
}

template <class T>
struct Normalise {
  Rows<T> rows;
  const Compute<T>* gain;
  const Compute<T>* bias;
  const Compute<T>* mean;
  const Compute<T>* reciprocal;  // null: that of the variance
  const Compute<T>* variance;
  Compute<T> epsilon;
  T* y;
};

template <int kWidth, class T>
__global__ void __launch_bounds__(kSumColumns* kSumRows) normalise_columns(Normalise<T> f) {
  using C = Compute<T>;
  const std::int64_t column = block_column<kWidth>();
  if (column >= f.rows.n) return;
  const Pack<C, kWidth> mean = load<kWidth>(f.mean + column), bias = load<kWidth>(f.bias + column);
  Pack<C, kWidth> factor = load<kWidth>(f.gain + column);
  for (int j = 0; j < kWidth; ++j)
    factor.value[j] *=
        f.reciprocal != nullptr ? f.reciprocal[column + j] : C(1) / std::sqrt(f.variance[column + j] + f.epsilon);
  for_block_rows(f.rows.count, [&](std::int64_t row) {
    Pack<C, kWidth> value{};
    if (!f.rows.masked(row)) {
      value = load<kWidth>(f.rows.x + row * f.rows.n + column);
      for (int j = 0; j < kWidth; ++j)
        value.value[j] = (value.value[j] - mean.value[j]) * factor.value[j] + bias.value[j];
    }
    store(f.y + row * f.rows.n + column, value);
  });
}

template <class T>
void normalise(Step& step, const Normalise<T>& f) {
  with_width<T>(aligned_for_packs(f.rows.x, f.gain, f.bias, f.mean, f.y), f.rows.n,
                [&]<int kWidth>() { launch(step, column_blocks<kWidth>(f.rows), normalise_columns<kWidth, T>, f); });
}

void batch_norm_training(Step& step, const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                         const Tensor& bias, double epsilon, double momentum, Tensor& running_mean,
                         Tensor& running_variance, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation) {
  dispatch_storage(x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const Rows<T> rows(x, mask);
    const C share = C(1) / static_cast<C>(count > 1 ? count : 1);
    C* const means = mean.data<C>();
    const Workspace memory = step.workspace(static_cast<std::size_t>(2 * rows.n) * sizeof(C));
    C* const distances = memory.data<C>();
    const bool in_packs = aligned_for_packs(rows.x, means);
    column_sums<T, C>(step, in_packs, rows.count, rows.n, MeanTerms<T>{rows, share}, {means});
    // A second pass: the difference of squares would cancel for features far from zero.
    column_sums<T, C>(step, in_packs, rows.count, rows.n, DistanceTerms<T>{rows, share, means},
                      {distances, distances + rows.n});
    const Statistics<C> s{
        .distances = distances,
        .count = count,
        .n = rows.n,
        .epsilon = static_cast<C>(epsilon),
        .old_share = static_cast<C>(1 - momentum),
        .new_share = static_cast<C>(momentum),
        .unbiased = static_cast<C>(static_cast<double>(count) / static_cast<double>(count > 1 ? count - 1 : 1)),
        .mean = means,
        .reciprocal = reciprocal_deviation.data<C>(),
        .running_mean = running_mean.data<C>(),
        .running_variance = running_variance.data<C>()};
    launch(step, {.blocks = (rows.n + 255) / 256, .threads = 256}, finish_statistics<C>, s);
    normalise<T>(step, {.rows = rows,
                        .gain = gain.data<const C>(),
                        .bias = bias.data<const C>(),
                        .mean = means,
                        .reciprocal = s.reciprocal,
                        .variance = nullptr,
                        .epsilon = s.epsilon,
                        .y = y.data<T>()});
  });
}

void batch_norm_inference(Step& step, const Tensor& x, const Tensor& mask, const Tensor& gain, const Tensor& bias,
                          const Tensor& running_mean, const Tensor& running_variance, double epsilon, Tensor& y) {
  dispatch_storage(x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    normalise<T>(step, {.rows = Rows<T>(x, mask),
                        .gain = gain.data<const C>(),
                        .bias = bias.data<const C>(),
                        .mean = running_mean.data<const C>(),
                        .reciprocal = nullptr,
                        .variance = running_variance.data<const C>(),
                        .epsilon = static_cast<C>(epsilon),
                        .y = y.data<T>()});
  });
}

template <class T>
struct InputGradient {
  Rows<T> rows;
  Compute<T> share;
  const Compute<T>* gain;
  const Compute<T>* mean;
  const Compute<T>* reciprocal;
  const Compute<T>* sums;  // [2, n]: of dy s, of dy
  const T* dy;
  TargetElements<T> dx;
};

template <int kWidth, class T>
__global__ void __launch_bounds__(kSumColumns* kSumRows) input_gradient(InputGradient<T> b) {
  using C = Compute<T>;
  const std::int64_t column = block_column<kWidth>();
  if (column >= b.rows.n) return;
  const Pack<C, kWidth> mean = load<kWidth>(b.mean + column), reciprocal = load<kWidth>(b.reciprocal + column);
  Pack<C, kWidth> factor = load<kWidth>(b.gain + column), of_gain, of_bias;
  for (int j = 0; j < kWidth; ++j) {
    factor.value[j] *= reciprocal.value[j];
    of_gain.value[j] = b.sums[column + j] * b.share;
    of_bias.value[j] = b.sums[b.rows.n + column + j] * b.share;
  }
  for_block_rows(b.rows.count, [&](std::int64_t row) {
    const std::int64_t first = row * b.rows.n + column;
    Pack<C, kWidth> out{};
    if (!b.rows.masked(row)) {
      const Pack<C, kWidth> in = load<kWidth>(b.rows.x + first), dy = load<kWidth>(b.dy + first);
      for (int j = 0; j < kWidth; ++j) {
        const C normalised = (in.value[j] - mean.value[j]) * reciprocal.value[j];
        out.value[j] = (dy.value[j] - of_bias.value[j] - normalised * of_gain.value[j]) * factor.value[j];
      }
    } else if (b.dx.write == Write::add) {
      return;
    }
    write_pack(b.dx, first, out);
  });
}

void batch_norm_backward(Step& step, const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                         const Tensor& mean, const Tensor& reciprocal_deviation, const Tensor& dy, const Target& dx,
                         const Target& dgain, const Target& dbias) {
  dispatch_storage(x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const Rows<T> rows(x, mask);
    const ParameterTerms<T> terms{rows, dy.data<const T>(), mean.data<const C>(), reciprocal_deviation.data<const C>()};
    const bool in_packs = aligned_for_packs(rows.x, terms.dy, terms.mean, terms.reciprocal);
    if (!dx) return column_sums<T, C>(step, in_packs, rows.count, rows.n, terms, {dgain, dbias});
    const Workspace memory = step.workspace(static_cast<std::size_t>(2 * rows.n) * sizeof(C));
    C* const sums = memory.data<C>();
    column_sums<T, C>(step, in_packs, rows.count, rows.n, terms, {sums, sums + rows.n});
    if (dgain || dbias) add_column_sums<C, 2>(step, sums, 1, rows.n, {dgain, dbias});
    const InputGradient<T> b{.rows = rows,
                             .share = C(1) / static_cast<C>(count > 1 ? count : 1),
                             .gain = gain.data<const C>(),
                             .mean = terms.mean,
                             .reciprocal = terms.reciprocal,
                             .sums = sums,
                             .dy = terms.dy,
                             .dx = dx};
    with_width<T>(aligned_for_packs(b.rows.x, b.gain, b.mean, b.reciprocal, b.dy, b.dx.data), rows.n,
                  [&]<int kWidth>() { launch(step, column_blocks<kWidth>(rows), input_gradient<kWidth, T>, b); });
  });
}

const bool bound = kernels::batch_norm_training.bind(kThisDevice, &batch_norm_training) &&
                   kernels::batch_norm_inference.bind(kThisDevice, &batch_norm_inference) &&
                   kernels::batch_norm_backward.bind(kThisDevice, &batch_norm_backward);

}  // namespace
}  // namespace engram::cuda::batch_norm_kernels
