#include "core/kernels/window_attention_additive.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/window_places.cuh"
#include "cuda/window_softmax.cuh"

namespace engram::cuda::window_attention_additive_kernels {
namespace {

template <class T>
struct Additive {
  using C = Compute<T>;
  const T* keys;
  const T* queries;
  const C* vector;
  const C* dscores;
  const std::int32_t* preceding;
  WindowRule rule;
  std::int64_t width;
};

template <class T>
Additive<T> arguments(const Tensor& keys, const Tensor& queries, const Tensor& score_vector, const Tensor* dscores,
                      const Tensor& preceding, const WindowRule& rule) {
  using C = Compute<T>;
  return {keys.data<const T>(),
          queries.data<const T>(),
          score_vector.data<const C>(),
          dscores != nullptr ? dscores->data<const C>() : nullptr,
          preceding.data<const std::int32_t>(),
          rule,
          keys.shape()[2]};
}

/// The score of a key and a query, by a warp. key: null for one of zeros.
template <class T>
__device__ __forceinline__ Compute<T> score(const Additive<T>& in, const T* key, const T* query) {
  using C = Compute<T>;
  C sum = 0;
  for (std::int64_t i = threadIdx.x; i < in.width; i += kWarpLanes)
    sum += in.vector[i] * std::tanh((key != nullptr ? number(key + i) : C(0)) + number(query + i));
  return warp_sum(sum);
}

template <class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    additive_weights(Additive<T> in, std::int64_t positions, Compute<T>* weights) {
  using C = Compute<T>;
  const std::int64_t place = window_position(), window = in.rule.window;
  if (place >= positions) return;
  const std::int64_t b = place / in.rule.block, t = place % in.rule.block;
  const std::int64_t seen = in.rule.seen(t, in.preceding[place]);
  const T* keys = in.keys + (b * in.rule.rows() + in.rule.end(t) - seen) * in.width;
  const T* query = in.queries + place * in.width;
  C* row = weights + place * window;
  for (std::int64_t j = 0; j < seen; ++j) {
    const C of_key = score(in, keys + j * in.width, query);
    if (threadIdx.x == 0) row[window - seen + j] = of_key;
  }
  if (in.rule.count_missing && seen < window) {
    const C of_missing = score<T>(in, nullptr, query);
    for (std::int64_t c = threadIdx.x; c < window - seen; c += kWarpLanes) row[c] = of_missing;
  }
  __syncwarp();
  window_softmax(row, window, counted_columns(in.rule, seen));
}

void window_additive_weights(Step& step, const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                             const Tensor& preceding, const WindowRule& rule, Tensor& weights) {
  dispatch_storage(keys.dtype(), "window_attention_additive", [&]<class T>() {
    const std::int64_t positions = keys.shape()[0] * rule.block;
    launch(step, warp_for_each_position(positions), additive_weights<T>,
           arguments<T>(keys, queries, score_vector, nullptr, preceding, rule), positions, weights.data<Compute<T>>());
  });
}

/// The score vector's gradient, column by column over all positions; every number of the queries' gradient is made on
/// the way, from the same tanh.
template <class T>
struct PositionGradients {
  using C = Compute<T>;
  static constexpr int kSums = 1;
  Additive<T> in;
  TargetElements<T> dqueries;

  template <int kWidth>
  __device__ void add(std::int64_t place, std::int64_t column, C (&sums)[kSums][kWidth]) const {
    static_assert(kWidth == 1);
    const std::int64_t b = place / in.rule.block, t = place % in.rule.block, window = in.rule.window;
    const std::int64_t seen = in.rule.seen(t, in.preceding[place]);
    const T* keys = in.keys + (b * in.rule.rows() + in.rule.end(t) - seen) * in.width + column;
    const C query = number(in.queries + place * in.width + column);
    const C* dscores = in.dscores + place * window;
    C slopes = 0;
    const auto pair = [&](C key, C dscore) {
      const C m = std::tanh(key + query);
      slopes += dscore * (1 - m * m);
      sums[0][0] += dscore * m;
    };
    // The missing ones all have the same gradient.
    if (in.rule.count_missing && seen < window) pair(0, static_cast<C>(window - seen) * dscores[0]);
    for (std::int64_t j = 0; j < seen; ++j) pair(number(keys + j * in.width), dscores[window - seen + j]);
    if (dqueries.data != nullptr)
      write_pack(dqueries, place * in.width + column, Pack<C, 1>{{in.vector[column] * slopes}});
  }
};

template <class T>
__global__ void __launch_bounds__(kWindowColumns) key_gradients(Additive<T> in, TargetElements<T> dkeys) {
  using C = Compute<T>;
  const std::int64_t place = blockIdx.x, i = window_column();
  if (i >= in.width) return;
  const std::int64_t b = place / in.rule.rows(), row = place % in.rule.rows();
  const C key = number(in.keys + place * in.width + i);
  C slopes = 0;
  for (std::int64_t t = in.rule.first_reader(row); t < in.rule.end_of_readers(row); ++t) {
    const std::int64_t reader = b * in.rule.block + t;
    if (row < in.rule.end(t) - in.rule.seen(t, in.preceding[reader])) continue;
    const C m = std::tanh(key + number(in.queries + reader * in.width + i));
    slopes += in.dscores[reader * in.rule.window + in.rule.column(t, row)] * (1 - m * m);
  }
  write_pack(dkeys, place * in.width + i, Pack<C, 1>{{in.vector[i] * slopes}});
}

void window_additive_gradients(Step& step, const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                               const Tensor& dscores, const Tensor& preceding, const WindowRule& rule,
                               const AdditiveScoreGradients& gradients) {
  dispatch_storage(keys.dtype(), "window_attention_additive", [&]<class T>() {
    using C = Compute<T>;
    const Additive<T> in = arguments<T>(keys, queries, score_vector, &dscores, preceding, rule);
    const std::int64_t streams = keys.shape()[0];
    if (gradients.queries || gradients.score_vector)
      column_sums<1, C>(step, streams * rule.block, in.width, PositionGradients<T>{in, gradients.queries},
                        {gradients.score_vector});
    if (gradients.keys)
      launch(step, column_for_each_thread(streams * rule.rows(), in.width), key_gradients<T>, in, gradients.keys);
  });
}

const bool bound = kernels::window_additive_weights.bind(kThisDevice, &window_additive_weights) &&
                   kernels::window_additive_gradients.bind(kThisDevice, &window_additive_gradients);

}  // namespace
}  // namespace engram::cuda::window_attention_additive_kernels
