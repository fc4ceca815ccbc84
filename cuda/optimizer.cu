#include "core/kernels/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/elements.cuh"
#include "cuda/ordered_sum.cuh"
#include "cuda/segment_batch.cuh"

namespace engram::cuda::optimizer_kernels {
namespace {

/// Elements that a block updates.
constexpr std::int64_t kUpdateChunk = 4096;

template <class T>
struct Square {
  const T* x;

  __device__ double operator()(std::int64_t i) const {
    const double value = static_cast<double>(x[i]);
    return value * value;
  }
};

template <class T>
__global__ void __launch_bounds__(kSumThreads) chunk_squares(const T* gradient, SegmentBatch batch, double* partial) {
  const SegmentChunk chunk = batch.chunk(blockIdx.x);
  const double sum = sum_in_block(chunk.begin, chunk.end, Square<T>{gradient});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// The chunks of a segment, added up in order by one thread.
__global__ void finish_norms(SegmentBatch batch, const double* partial, double* squared_norm) {
  const int segment = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (segment >= batch.count) return;
  double sum = 0;
  for (int c = batch.first_chunk[segment]; c < batch.first_chunk[segment + 1]; ++c) sum += partial[c];
  squared_norm[segment] = sum;
}

void segment_chunk_squares(Step& step, const Tensor& gradient, const SegmentTable& segments, Tensor& squares) {
  dispatch_float(gradient.dtype(), "segment_chunk_squares", [&]<class T>() {
    double* sums = squares.data<double>();
    for_segment_batches(segments, kSegmentChunk, [&](std::size_t, const SegmentBatch& batch) {
      const int chunks = batch.first_chunk[batch.count];
      if (chunks == 0) return;
      launch(step, {.blocks = chunks, .threads = kSumThreads}, chunk_squares<T>, gradient.data<const T>(), batch, sums);
      sums += chunks;
    });
  });
}

void add_segment_chunks(Step& step, const Tensor& squares, const SegmentTable& segments, Tensor& squared_norm) {
  const double* sums = squares.data<const double>();
  double* norms = squared_norm.data<double>();
  for_segment_batches(segments, kSegmentChunk, [&](std::size_t first, const SegmentBatch& batch) {
    launch(step, {.blocks = 1, .threads = SegmentBatch::kMost}, finish_norms, batch, sums, norms + first);
    sums += batch.first_chunk[batch.count];
  });
}

template <class T>
struct Adagrad {
  const T* gradient;
  const double* squared_norm;  // of the batch's segments
  T* parameter;
  T* accumulator;
  const StepScalars* scalars;
  double rate_share, clip;
  bool clip_gradient;
  T epsilon;

  template <int kWidth>
  __device__ void run(std::int64_t i, T scale, T eta) const {
    const Pack<T, kWidth> in = load<kWidth>(gradient + i);
    Pack<T, kWidth> sum = load<kWidth>(accumulator + i), p = load<kWidth>(parameter + i);
    for (int j = 0; j < kWidth; ++j) {
      const T g = in.value[j] * scale;
      sum.value[j] += g * g;
      p.value[j] -= g * eta / (std::sqrt(sum.value[j]) + epsilon);
    }
    store(accumulator + i, sum);
    store(parameter + i, p);
  }
};

template <int kWidth, class T>
__global__ void __launch_bounds__(kSumThreads) adagrad_chunks(SegmentBatch batch, Adagrad<T> update) {
  const SegmentChunk chunk = batch.chunk(blockIdx.x);
  const double rate = update.rate_share * update.scalars->learning_rate;
  const double norm = std::sqrt(update.squared_norm[chunk.segment]);
  const double shrink = update.clip > 0 && norm > update.clip ? update.clip / (norm + 1e-10) : 1;
  const T scale = update.clip_gradient ? static_cast<T>(shrink) : T(1);
  const T eta = static_cast<T>(update.clip_gradient ? rate : rate * shrink);
  for (std::int64_t i = chunk.begin + threadIdx.x * kWidth; i < chunk.end; i += kSumThreads * kWidth) {
    if (i + kWidth <= chunk.end) {
      update.template run<kWidth>(i, scale, eta);
    } else {
      for (std::int64_t last = i; last < chunk.end; ++last) update.template run<1>(last, scale, eta);
    }
  }
}

void adagrad(Step& step, const Tensor& gradient, const SegmentTable& segments, const Tensor& squared_norm,
             const kernels::AdagradOptions& options, Tensor& parameter, Tensor& accumulator) {
  dispatch_float(parameter.dtype(), "adagrad", [&]<class T>() {
    Adagrad<T> update{.gradient = gradient.data<const T>(),
                      .squared_norm = nullptr,
                      .parameter = parameter.data<T>(),
                      .accumulator = accumulator.data<T>(),
                      .scalars = step.scalars(),
                      .rate_share = options.rate_share,
                      .clip = options.clip,
                      .clip_gradient = options.clip_gradient,
                      .epsilon = static_cast<T>(options.epsilon)};
    const bool in_packs = aligned_for_packs(update.gradient, update.parameter, update.accumulator) &&
                          std::ranges::all_of(segments, [](const Segment& s) { return s.offset % kPackWidth<T> == 0; });
    for_segment_batches(segments, kUpdateChunk, [&](std::size_t first, const SegmentBatch& batch) {
      update.squared_norm = squared_norm.data<const double>() + first;
      const LaunchSize size{.blocks = batch.first_chunk[batch.count], .threads = kSumThreads};
      if (in_packs)
        launch(step, size, adagrad_chunks<kPackWidth<T>, T>, batch, update);
      else
        launch(step, size, adagrad_chunks<1, T>, batch, update);
    });
  });
}

/// What is the same for all elements of a step of Adam.
struct AdamFactors {
  double step_size, root_scale, decay;
};
__global__ void adam_factors(const StepScalars* scalars, kernels::AdamOptions options, AdamFactors* factors) {
  const double rate = options.rate_share * scalars->learning_rate;
  const AdamStep step = AdamStep::of(options.epsilon_at, rate, options.beta1, options.beta2,
                                     static_cast<std::int64_t>(scalars->step) + 1);
  factors->step_size = step.size;
  factors->root_scale = step.root_scale;
  factors->decay = rate * options.weight_decay;
}

template <class T>
struct Adam {
  const T* gradient;
  const double* gradient_scale;
  const AdamFactors* factors;
  T beta1, rest1, beta2, rest2, epsilon;
  T* parameter;
  T* first;
  T* second;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const T scale = static_cast<T>(gradient_scale[0]), step_size = static_cast<T>(factors->step_size);
    const T root_scale = static_cast<T>(factors->root_scale), decay = static_cast<T>(factors->decay);
    const Pack<T, kWidth> in = load<kWidth>(gradient + i);
    Pack<T, kWidth> m = load<kWidth>(first + i), v = load<kWidth>(second + i), p = load<kWidth>(parameter + i);
    for (int j = 0; j < kWidth; ++j) {
      const T g = in.value[j] * scale;
      m.value[j] = m.value[j] * beta1 + g * rest1;
      v.value[j] = v.value[j] * beta2 + g * g * rest2;
      p.value[j] -= p.value[j] * decay + m.value[j] * step_size / (std::sqrt(v.value[j]) * root_scale + epsilon);
    }
    store(first + i, m);
    store(second + i, v);
    store(parameter + i, p);
  }
};

void adam(Step& step, const Tensor& gradient, const Tensor& gradient_scale, const kernels::AdamOptions& options,
          Tensor& parameter, Tensor& first_moment, Tensor& second_moment) {
  dispatch_float(parameter.dtype(), "adam", [&]<class T>() {
    const Workspace memory = step.workspace(sizeof(AdamFactors));
    launch(step, {.blocks = 1, .threads = 1}, adam_factors, step.scalars(), options, memory.data<AdamFactors>());
    const Adam<T> body{.gradient = gradient.data<const T>(),
                       .gradient_scale = gradient_scale.data<const double>(),
                       .factors = memory.data<AdamFactors>(),
                       .beta1 = static_cast<T>(options.beta1),
                       .rest1 = static_cast<T>(1 - options.beta1),
                       .beta2 = static_cast<T>(options.beta2),
                       .rest2 = static_cast<T>(1 - options.beta2),
                       .epsilon = static_cast<T>(options.epsilon),
                       .parameter = parameter.data<T>(),
                       .first = first_moment.data<T>(),
                       .second = second_moment.data<T>()};
    for_each_element<T>(step, parameter.count(),
                        aligned_for_packs(body.gradient, body.parameter, body.first, body.second), body);
  });
}

template <class T>
struct Sgd {
  const T* gradient;
  const double* gradient_scale;
  const StepScalars* scalars;
  double rate_share;
  T momentum;
  T of_gradient, of_velocity;  // what the step is: 0 and 1, or Nesterov's 1 and momentum
  T* parameter;
  T* velocity;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const T scale = static_cast<T>(gradient_scale[0]), rate = static_cast<T>(rate_share * scalars->learning_rate);
    const Pack<T, kWidth> in = load<kWidth>(gradient + i);
    Pack<T, kWidth> v = load<kWidth>(velocity + i), p = load<kWidth>(parameter + i);
    for (int j = 0; j < kWidth; ++j) {
      const T g = scale * in.value[j];
      v.value[j] = momentum * v.value[j] + g;
      p.value[j] -= rate * (of_gradient * g + of_velocity * v.value[j]);
    }
    store(velocity + i, v);
    store(parameter + i, p);
  }
};

void sgd(Step& step, const Tensor& gradient, const Tensor& gradient_scale, const kernels::SgdOptions& options,
         Tensor& parameter, Tensor& velocity) {
  dispatch_float(parameter.dtype(), "sgd", [&]<class T>() {
    const Sgd<T> body{.gradient = gradient.data<const T>(),
                      .gradient_scale = gradient_scale.data<const double>(),
                      .scalars = step.scalars(),
                      .rate_share = options.rate_share,
                      .momentum = static_cast<T>(options.momentum),
                      .of_gradient = T(options.nesterov ? 1 : 0),
                      .of_velocity = options.nesterov ? static_cast<T>(options.momentum) : T(1),
                      .parameter = parameter.data<T>(),
                      .velocity = velocity.data<T>()};
    for_each_element<T>(step, parameter.count(), aligned_for_packs(body.gradient, body.parameter, body.velocity), body);
  });
}

struct Norm {
  const double* squared;

  __device__ double operator()(std::int64_t i) const { return squared[i]; }
};
struct StoreClipScale {
  double limit;
  double* scale;

  __device__ void operator()(double total) const {
    const double shrunk = limit / (std::sqrt(total) + 1e-6);
    scale[0] = limit > 0 && shrunk < 1.0 ? shrunk : 1.0;
  }
};

void clip_scale(Step& step, const Tensor& squared_norm, double limit, Tensor& scale) {
  ordered_sum(step, squared_norm.count(), Norm{squared_norm.data<const double>()},
              StoreClipScale{limit, scale.data<double>()});
}

template <class T>
struct Clamp {
  T* x;
  T low, high;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<T, kWidth> value = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) {  // comparisons, not min and max: a NaN fails both
      const T v = value.value[j];
      value.value[j] = v < low ? low : v > high ? high : v;
    }
    store(x + i, value);
  }
};

void clamp(Step& step, Tensor& x, double low, double high) {
  dispatch_float(x.dtype(), "clamp", [&]<class T>() {
    const Clamp<T> body{x.data<T>(), static_cast<T>(low), static_cast<T>(high)};
    for_each_element<T>(step, x.count(), aligned_for_packs(body.x), body);
  });
}

const bool bound = kernels::segment_chunk_squares.bind(kThisDevice, &segment_chunk_squares) &&
                   kernels::add_segment_chunks.bind(kThisDevice, &add_segment_chunks) &&
                   kernels::adagrad.bind(kThisDevice, &adagrad) && kernels::adam.bind(kThisDevice, &adam) &&
                   kernels::sgd.bind(kThisDevice, &sgd) && kernels::clip_scale.bind(kThisDevice, &clip_scale) &&
                   kernels::clamp.bind(kThisDevice, &clamp);

}  // namespace
}  // namespace engram::cuda::optimizer_kernels
