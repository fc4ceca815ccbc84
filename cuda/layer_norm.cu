#include "core/kernels/layer_norm.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/kept_row.cuh"

namespace engram::cuda::layer_norm_kernels {
namespace {

template <class T>
struct Forward {
  const T* x;
  const T* residual;  // null: none
  const Compute<T>* gain;
  const Compute<T>* bias;
  Compute<T> epsilon;
  T* sum;  // null exactly when residual is
  T* y;
  Compute<T>* mean;
  Compute<T>* reciprocal_deviation;
  std::int64_t rows, n;
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads) normalise_rows(Forward<T> f) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * f.n;
  if (row >= f.rows) return;
  const C count = static_cast<C>(f.n);
  KeptRow<Team, kWidth, C> kept;
  C total = 0;
  const auto read = [&](std::int64_t i) {
    Pack<C, kWidth> value = load<kWidth>(f.x + first + i);
    if (f.residual != nullptr) {
      const Pack<C, kWidth> other = load<kWidth>(f.residual + first + i);
      for (int j = 0; j < kWidth; ++j) value.value[j] += other.value[j];
      store(f.sum + first + i, value);
      value = as_stored<T>(value);
    }
    for (int j = 0; j < kWidth; ++j) total += value.value[j];
    return value;
  };
  for_kept<Team, kWidth>(f.n, [&](int p, std::int64_t i) { kept.pack[p] = read(i); });
  for_not_kept<Team, kWidth>(f.n, [&](std::int64_t i) { read(i); });
  // Every thread reads back what it wrote itself.
  const auto read_again = [&](std::int64_t i) {
    return load<kWidth>((f.residual != nullptr ? f.sum : f.x) + first + i);
  };
  const C mean = Team::sum(total) / count;
  // Two passes: the difference of squares would cancel for rows far from zero.
  C squares = 0;
  const auto add_squares = [&](const Pack<C, kWidth>& value) {
    for (int j = 0; j < kWidth; ++j) squares += (value.value[j] - mean) * (value.value[j] - mean);
  };
  for_kept<Team, kWidth>(f.n, [&](int p, std::int64_t) { add_squares(kept.pack[p]); });
  for_not_kept<Team, kWidth>(f.n, [&](std::int64_t i) { add_squares(read_again(i)); });
  const C reciprocal = C(1) / std::sqrt(Team::sum(squares) / count + f.epsilon);
  const auto write = [&](std::int64_t i, Pack<C, kWidth> value) {
    const Pack<C, kWidth> factor = load<kWidth>(f.gain + i), offset = load<kWidth>(f.bias + i);
    for (int j = 0; j < kWidth; ++j)
      value.value[j] = (value.value[j] - mean) * reciprocal * factor.value[j] + offset.value[j];
    store(f.y + first + i, value);
  };
  for_kept<Team, kWidth>(f.n, [&](int p, std::int64_t i) { write(i, kept.pack[p]); });
  for_not_kept<Team, kWidth>(f.n, [&](std::int64_t i) { write(i, read_again(i)); });
  if (Team::rank() != 0) return;
  f.mean[row] = mean;
  f.reciprocal_deviation[row] = reciprocal;
}

void layer_norm_forward(Step& step, const Tensor& x, const Tensor& residual, const Tensor& gain, const Tensor& bias,
                        double epsilon, Tensor& sum, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation) {
  dispatch_storage(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const Forward<T> f{.x = x.data<const T>(),
                       .residual = residual ? residual.data<const T>() : nullptr,
                       .gain = gain.data<const C>(),
                       .bias = bias.data<const C>(),
                       .epsilon = static_cast<C>(epsilon),
                       .sum = residual ? sum.data<T>() : nullptr,
                       .y = y.data<T>(),
                       .mean = mean.data<C>(),
                       .reciprocal_deviation = reciprocal_deviation.data<C>(),
                       .rows = x.shape().rows(),
                       .n = x.shape()[-1]};
    with_row_team<T>(
        f.n, aligned_for_packs(f.x, f.residual, f.gain, f.bias, f.sum, f.y),
        [&]<class Team, int kWidth>() { launch(step, row_launch<Team>(f.rows), normalise_rows<T, Team, kWidth>, f); });
  });
}

template <class T>
struct Backward {
  const T* in;
  const Compute<T>* gain;
  const Compute<T>* mean;
  const Compute<T>* reciprocal_deviation;
  const T* dy;
  const T* direct;  // the gradient that reaches the sum directly; null: none
  TargetElements<T> dx;
  std::int64_t rows, n;
};

/// A row's gradient from packs of it.
template <class C>
struct RowGradient {
  C mean, reciprocal;
  C sum_g = 0, sum_gs = 0;  ///< of gain dy, and of that times the normalised numbers; then their means

  template <int kWidth>
  __device__ __forceinline__ void add(const Pack<C, kWidth>& in, const Pack<C, kWidth>& dy,
                                      const Pack<C, kWidth>& gain) {
    for (int j = 0; j < kWidth; ++j) {
      const C g = dy.value[j] * gain.value[j];
      sum_g += g;
      sum_gs += g * ((in.value[j] - mean) * reciprocal);
    }
  }
  template <class Team>
  __device__ __forceinline__ void finish(std::int64_t n) {
    sum_g = Team::sum(sum_g) / static_cast<C>(n);
    sum_gs = Team::sum(sum_gs) / static_cast<C>(n);
  }
  template <class T, int kWidth>
  __device__ __forceinline__ void write(const Backward<T>& b, std::int64_t place, const Pack<C, kWidth>& in,
                                        const Pack<C, kWidth>& dy, const Pack<C, kWidth>& gain) const {
    Pack<C, kWidth> out;
    for (int j = 0; j < kWidth; ++j)
      out.value[j] = (dy.value[j] * gain.value[j] - sum_g - (in.value[j] - mean) * reciprocal * sum_gs) * reciprocal;
    if (b.direct != nullptr) {
      const Pack<C, kWidth> more = load<kWidth>(b.direct + place);
      for (int j = 0; j < kWidth; ++j) out.value[j] += more.value[j];
    }
    write_pack(b.dx, place, out);
  }
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads) row_gradients(Backward<T> b) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * b.n;
  if (row >= b.rows) return;
  RowGradient<C> gradient{b.mean[row], b.reciprocal_deviation[row]};
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    gradient.add(load<kWidth>(b.in + first + i), load<kWidth>(b.dy + first + i), load<kWidth>(b.gain + i));
  });
  gradient.template finish<Team>(b.n);
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    gradient.write(b, first + i, load<kWidth>(b.in + first + i), load<kWidth>(b.dy + first + i),
                   load<kWidth>(b.gain + i));
  });
}

/// Of the gain and of the bias.
template <class T>
struct ParameterTerms {
  static constexpr int kSums = 2;
  Backward<T> b;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    const std::int64_t first = row * b.n + column;
    const Pack<Compute<T>, kWidth> dy = load<kWidth>(b.dy + first), in = load<kWidth>(b.in + first);
    const Compute<T> mean = b.mean[row], reciprocal = b.reciprocal_deviation[row];
    for (int j = 0; j < kWidth; ++j) {
      sums[0][j] += dy.value[j] * ((in.value[j] - mean) * reciprocal);
      sums[1][j] += dy.value[j];
    }
  }
};

/// Blocks that a multiprocessor is to hold at a time, so that enough bytes are on their way.
constexpr int kResidentBlocks = 3;

/// The gradients of many rows read once: a block has a chunk of them, and adds up for gain and bias as it goes.
/// partial: [chunks, 2, n]. A thread has the same columns in every row.
template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads, kResidentBlocks)
    chunk_gradients(Backward<T> b, std::int64_t chunk, Compute<T>* partial) {
  using C = Compute<T>;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * chunk;
  const std::int64_t end = begin + chunk < b.rows ? begin + chunk : b.rows;
  KeptRow<Team, kWidth, C> of_gain{}, of_bias{};
  for (std::int64_t row = begin + threadIdx.y; row < end; row += Team::kRows) {
    const std::int64_t first = row * b.n;
    RowGradient<C> gradient{b.mean[row], b.reciprocal_deviation[row]};
    KeptRow<Team, kWidth, C> in, dy;
    for_kept<Team, kWidth>(b.n, [&](int p, std::int64_t i) {
      in.pack[p] = load<kWidth>(b.in + first + i);
      dy.pack[p] = load<kWidth>(b.dy + first + i);
      gradient.add(in.pack[p], dy.pack[p], load<kWidth>(b.gain + i));
    });
    gradient.template finish<Team>(b.n);
    for_kept<Team, kWidth>(b.n, [&](int p, std::int64_t i) {
      gradient.write(b, first + i, in.pack[p], dy.pack[p], load<kWidth>(b.gain + i));
      for (int j = 0; j < kWidth; ++j) {
        const C of_dy = dy.pack[p].value[j];
        of_gain.pack[p].value[j] += of_dy * ((in.pack[p].value[j] - gradient.mean) * gradient.reciprocal);
        of_bias.pack[p].value[j] += of_dy;
      }
    });
  }
  C* const sums = partial + 2 * static_cast<std::int64_t>(blockIdx.x) * b.n;
  write_sums_of_rows<Team, kWidth>(b.n, of_gain, sums);
  write_sums_of_rows<Team, kWidth>(b.n, of_bias, sums + b.n);
}

/// Of the gain and of the bias, from partial sums of the above; rows are chunks.
template <class C>
struct PartialTerms {
  static constexpr int kSums = 2;
  const C* partial;
  std::int64_t n;

  template <int kWidth>
  __device__ void add(std::int64_t chunk, std::int64_t column, C (&sums)[kSums][kWidth]) const {
    for (int s = 0; s < kSums; ++s)
      for (int j = 0; j < kWidth; ++j) sums[s][j] += partial[(chunk * kSums + s) * n + column + j];
  }
};

/// Chunks of that kernel: enough for a card twice over, and few for the sums of the sums. By the number of rows alone.
constexpr std::int64_t kMostChunks = 768, kFewestChunks = 256, kLeastChunk = 8;

template <class T, class Team, int kWidth>
void all_gradients(Step& step, const Backward<T>& b, const TargetElements<Compute<T>> (&sums)[2]) {
  using C = Compute<T>;
  const std::int64_t chunk = std::max(kLeastChunk, (b.rows + kMostChunks - 1) / kMostChunks);
  const std::int64_t chunks = (b.rows + chunk - 1) / chunk;
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks * 2 * b.n) * sizeof(C));
  C* const partial = memory.data<C>();
  launch(step, {.blocks = chunks, .threads = {Team::kSize, Team::kRows}}, chunk_gradients<T, Team, kWidth>, b, chunk,
         partial);
  column_sums<1, C>(step, chunks, b.n, PartialTerms<C>{partial, b.n}, sums);
}

void layer_norm_backward(Step& step, const Tensor& sum, const Tensor& gain, const Tensor& mean,
                         const Tensor& reciprocal_deviation, const Tensor& dy, const Tensor& dsum_in, const Target& dx,
                         const Target& dgain, const Target& dbias) {
  dispatch_storage(sum.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const Backward<T> b{.in = sum.data<const T>(),
                        .gain = gain.data<const C>(),
                        .mean = mean.data<const C>(),
                        .reciprocal_deviation = reciprocal_deviation.data<const C>(),
                        .dy = dy.data<const T>(),
                        .direct = dsum_in ? dsum_in.data<const T>() : nullptr,
                        .dx = dx,
                        .rows = sum.shape().rows(),
                        .n = sum.shape()[-1]};
    const TargetElements<C> sums[2] = {dgain, dbias};
    bool done = false;
    if (dx)
      with_row_team<T>(b.n, aligned_for_packs(b.in, b.gain, b.dy, b.direct, b.dx.data), [&]<class Team, int kWidth>() {
        // Four numbers of f64 for each of a row are more than the registers.
        if constexpr (sizeof(C) == 4 && kKeptElements < Team, kWidth >> 0)
          if (done = (dgain || dbias) && b.rows >= kLeastChunk * kFewestChunks; done)
            return all_gradients<T, Team, kWidth>(step, b, sums);
        launch(step, row_launch<Team>(b.rows), row_gradients<T, Team, kWidth>, b);
      });
    if (!done && (dgain || dbias))
      column_sums<T, C>(step, aligned_for_packs(b.in, b.dy), b.rows, b.n, ParameterTerms<T>{b}, sums);
  });
}

const bool bound = kernels::layer_norm_forward.bind(kThisDevice, &layer_norm_forward) &&
                   kernels::layer_norm_backward.bind(kThisDevice, &layer_norm_backward);

}  // namespace
}  // namespace engram::cuda::layer_norm_kernels
