#include "core/kernels/optimizer.hpp"

#include <cmath>

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

/// The chunks of all segments, one after the other; each lies inside one segment.
struct SegmentPart {
  std::int64_t begin, end;
  std::size_t segment;
};
std::pmr::vector<SegmentPart> parts_of(Step& step, const SegmentTable& segments) {
  std::pmr::vector<SegmentPart> parts(step.objects());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::int64_t end = segments[s].offset + segments[s].count;
    for (std::int64_t begin = segments[s].offset; begin < end; begin += kSegmentChunk)
      parts.push_back({begin, std::min(end, begin + kSegmentChunk), s});
  }
  return parts;
}

/// Calls body(begin, count) for short pieces of [begin, end): several array expressions over one piece find it in the
/// first cache, and Eigen has a vectorised square root, which a plain loop has not.
template <class Body>
void in_pieces(std::int64_t begin, std::int64_t end, Body&& body) {
  constexpr std::int64_t kPiece = 1024;
  for (; begin < end; begin += kPiece) body(begin, std::min(kPiece, end - begin));
}

void segment_chunk_squares(Step& step, const Tensor& gradient, const SegmentTable& segments, Tensor& squares) {
  dispatch_float(gradient.dtype(), "segment_chunk_squares", [&]<class T>() {
    const T* g = gradient.data<const T>();
    const std::pmr::vector<SegmentPart> parts = parts_of(step, segments);
    double* sums = squares.data<double>();
    parallel_items(static_cast<std::int64_t>(parts.size()), [&](std::int64_t c) {
      const SegmentPart& part = parts[static_cast<std::size_t>(c)];
      sums[c] = sum_in_lanes(part.begin, part.end, [g](std::int64_t i) {
        const auto value = static_cast<double>(g[i]);
        return value * value;
      });
    });
  });
}

void add_segment_chunks(Step&, const Tensor& squares, const SegmentTable& segments, Tensor& squared_norm) {
  const double* chunk = squares.data<const double>();
  double* norms = squared_norm.data<double>();
  for (const Segment& segment : segments) {
    double sum = 0;
    for (std::int64_t c = 0; c < chunks_of(segment); ++c) sum += *chunk++;
    *norms++ = sum;
  }
}

void adagrad(Step& step, const Tensor& gradient, const SegmentTable& segments, const Tensor& squared_norm,
             const kernels::AdagradOptions& options, Tensor& parameter, Tensor& accumulator) {
  dispatch_float(parameter.dtype(), "adagrad", [&]<class T>() {
    const double rate = options.rate_share * step.scalars()->learning_rate;
    const T* gradients = gradient.data<const T>();
    const double* norms = squared_norm.data<const double>();
    T* parameters = parameter.data<T>();
    T* sums = accumulator.data<T>();
    const T epsilon = static_cast<T>(options.epsilon);
    const std::pmr::vector<SegmentPart> parts = parts_of(step, segments);
    parallel_items(static_cast<std::int64_t>(parts.size()), [&](std::int64_t c) {
      const SegmentPart& part = parts[static_cast<std::size_t>(c)];
      const double norm = std::sqrt(norms[part.segment]);
      const double shrink = options.clip > 0 && norm > options.clip ? options.clip / (norm + 1e-10) : 1;
      const T scale = options.clip_gradient ? static_cast<T>(shrink) : T(1);
      const T eta = static_cast<T>(options.clip_gradient ? rate : rate * shrink);
      in_pieces(part.begin, part.end, [&](std::int64_t begin, std::int64_t count) {
        const auto g = vec(gradients + begin, count) * scale;
        auto sum = vec(sums + begin, count);
        sum += g.square();
        vec(parameters + begin, count) -= g * eta / (sum.sqrt() + epsilon);
      });
    });
  });
}

void adam(Step& step, const Tensor& gradient, const Tensor& gradient_scale, const kernels::AdamOptions& options,
          Tensor& parameter, Tensor& first_moment, Tensor& second_moment) {
  dispatch_float(parameter.dtype(), "adam", [&]<class T>() {
    const double rate = options.rate_share * step.scalars()->learning_rate;
    const AdamStep factors = AdamStep::of(options.epsilon_at, rate, options.beta1, options.beta2,
                                          static_cast<std::int64_t>(step.scalars()->step) + 1);
    const T* gradients = gradient.data<const T>();
    T* parameters = parameter.data<T>();
    T* first = first_moment.data<T>();
    T* second = second_moment.data<T>();
    const T scale = static_cast<T>(gradient_scale.data<const double>()[0]);
    const T beta1 = static_cast<T>(options.beta1), rest1 = static_cast<T>(1 - options.beta1);
    const T beta2 = static_cast<T>(options.beta2), rest2 = static_cast<T>(1 - options.beta2);
    const T step_size = static_cast<T>(factors.size), root_scale = static_cast<T>(factors.root_scale);
    const T epsilon = static_cast<T>(options.epsilon);
    const T decay = static_cast<T>(rate * options.weight_decay);
    parallel_chunks(parameter.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      in_pieces(begin, end, [&](std::int64_t from, std::int64_t count) {
        const auto g = vec(gradients + from, count) * scale;
        auto m = vec(first + from, count);
        auto v = vec(second + from, count);
        auto p = vec(parameters + from, count);
        m = m * beta1 + g * rest1;
        v = v * beta2 + g.square() * rest2;
        p -= p * decay + m * step_size / (v.sqrt() * root_scale + epsilon);
      });
    });
  });
}

void sgd(Step& step, const Tensor& gradient, const Tensor& gradient_scale, const kernels::SgdOptions& options,
         Tensor& parameter, Tensor& velocity) {
  dispatch_float(parameter.dtype(), "sgd", [&]<class T>() {
    const T* gradients = gradient.data<const T>();
    T* parameters = parameter.data<T>();
    T* velocities = velocity.data<T>();
    const T scale = static_cast<T>(gradient_scale.data<const double>()[0]);
    const T kept = static_cast<T>(options.momentum);
    const T rate = static_cast<T>(options.rate_share * step.scalars()->learning_rate);
    parallel_chunks(parameter.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      if (options.nesterov) {
        for (std::int64_t i = begin; i < end; ++i) {
          const T gradient_here = scale * gradients[i];
          velocities[i] = kept * velocities[i] + gradient_here;
          parameters[i] -= rate * (gradient_here + kept * velocities[i]);
        }
      } else {
        for (std::int64_t i = begin; i < end; ++i) {
          velocities[i] = kept * velocities[i] + scale * gradients[i];
          parameters[i] -= rate * velocities[i];
        }
      }
    });
  });
}

void clip_scale(Step&, const Tensor& squared_norm, double limit, Tensor& scale) {
  const double* norms = squared_norm.data<const double>();
  double total = 0;
  for (std::int64_t s = 0; s < squared_norm.count(); ++s) total += norms[s];
  scale.data<double>()[0] = limit > 0 ? std::min(1.0, limit / (std::sqrt(total) + 1e-6)) : 1.0;
}

void clamp(Step&, Tensor& x, double low, double high) {
  dispatch_float(x.dtype(), "clamp", [&]<class T>() {
    T* values = x.data<T>();
    const T least = static_cast<T>(low), most = static_cast<T>(high);
    parallel_chunks(x.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)  // comparisons, not min and max: a NaN fails both
        values[i] = values[i] < least ? least : values[i] > most ? most : values[i];
    });
  });
}

const bool bound = kernels::segment_chunk_squares.bind(DeviceKind::cpu, &segment_chunk_squares) &&
                   kernels::add_segment_chunks.bind(DeviceKind::cpu, &add_segment_chunks) &&
                   kernels::adagrad.bind(DeviceKind::cpu, &adagrad) && kernels::adam.bind(DeviceKind::cpu, &adam) &&
                   kernels::sgd.bind(DeviceKind::cpu, &sgd) && kernels::clip_scale.bind(DeviceKind::cpu, &clip_scale) &&
                   kernels::clamp.bind(DeviceKind::cpu, &clamp);

}  // namespace
}  // namespace engram::cpu
