#pragma once
/// Update rules over a whole group of parameters at once. A group is one flat block; its segments are the tensors.

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "core/rules/adam_step.hpp"

namespace engram {

/// One parameter tensor inside the flat block of its group.
struct Segment {
  std::int64_t offset = 0;  ///< elements from the start of the block
  std::int64_t count = 0;
};
using SegmentTable = std::vector<Segment>;

/// A segment's norm is summed chunk by chunk, of so many elements from its beginning on: who has some chunks of a
/// segment can sum them, and whoever adds all up in order gets the same bits.
inline constexpr std::int64_t kSegmentChunk = 16384;
constexpr std::int64_t chunks_of(const Segment& segment) { return (segment.count + kSegmentChunk - 1) / kSegmentChunk; }
constexpr std::int64_t chunks_of(const SegmentTable& segments) {
  std::int64_t chunks = 0;
  for (const Segment& segment : segments) chunks += chunks_of(segment);
  return chunks;
}

namespace kernels {

/// squares[c] = sum of the squares of chunk c, in double; chunks are numbered over all segments in order. squares:
/// [chunks] f64.
inline constinit Kernel<void(const Tensor& gradient, const SegmentTable& segments, Tensor& squares)>
    segment_chunk_squares{"segment_chunk_squares"};

/// squared_norm[s] = sum of the chunks of segment s, in order; 0 for none. squares: [chunks], squared_norm: [segments],
/// f64.
inline constinit Kernel<void(const Tensor& squares, const SegmentTable& segments, Tensor& squared_norm)>
    add_segment_chunks{"add_segment_chunks"};

struct AdagradOptions {
  double clip = 0;             ///< largest norm of a tensor's gradient; 0: no clipping
  bool clip_gradient = false;  ///< false: the step is shrunk and the accumulator sees the raw gradient (default)
  double epsilon = 1e-10;
  double rate_share = 1;  ///< of the step's learning rate
};
/// For every segment, with n the norm of its gradient g and lr = rate_share times the step scalars' learning rate:
///   eta = lr (n > clip ? clip / (n + 1e-10) : 1);  G += g g;  p -= eta g / (sqrt(G) + epsilon)
/// clip_gradient: g is scaled before both uses instead. Duchi, Hazan, Singer, JMLR 12 (2011); the clipping is that of
/// the adaptive-span models. All: [n], f32 or f64; squared_norm: [segments] f64.
inline constinit Kernel<void(const Tensor& gradient, const SegmentTable& segments, const Tensor& squared_norm,
                             const AdagradOptions& options, Tensor& parameter, Tensor& accumulator)>
    adagrad{"adagrad"};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  EpsilonAt epsilon_at = EpsilonAt::corrected;
  double weight_decay = 0;  ///< decoupled
  double rate_share = 1;    ///< of the step's learning rate
};
/// Kingma, Ba: "Adam" (2015). With lr = rate_share times the scalars' rate, t = scalars.step + 1 and g =
/// gradient_scale[0] (f64, on the device: the clip factor) times the gradient:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
///   p -= lr weight_decay p + lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon)                     corrected
///   p -= lr weight_decay p + lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon)                   uncorrected
inline constinit Kernel<void(const Tensor& gradient, const Tensor& gradient_scale, const AdamOptions& options,
                             Tensor& parameter, Tensor& first_moment, Tensor& second_moment)>
    adam{"adam"};

struct SgdOptions {
  double momentum = 0;
  double rate_share = 1;  ///< of the step's learning rate
  bool nesterov = false;
};
/// With g = gradient_scale[0] times the gradient: v = momentum v + g, then
///   p -= lr v                                                                                         plain
///   p -= lr (g + momentum v)                                                                          nesterov
/// The second is Nesterov's accelerated gradient as Sutskever, Martens, Dahl, Hinton: "On the importance of
/// initialization and momentum in deep learning" (2013) have it, where p is the point whose gradient is taken. All:
/// [n], f32 or f64; gradient_scale: [1] f64.
inline constinit Kernel<void(const Tensor& gradient, const Tensor& gradient_scale, const SgdOptions& options,
                             Tensor& parameter, Tensor& velocity)>
    sgd{"sgd"};

/// scale[0] = min(1, limit / (sqrt(sum of squared_norm) + 1e-6)), 1 when limit is 0. Both f64, on the device. It is the
/// form of PyTorch; that of TensorFlow, limit / max(norm, limit), is larger by a share of 1e-6 / norm where it clips,
/// and is 1 from a norm of `limit` down, not of limit - 1e-6.
inline constinit Kernel<void(const Tensor& squared_norm, double limit, Tensor& scale)> clip_scale{"clip_scale"};

/// x[i] = clamp(x[i], low, high); a NaN stays a NaN.
inline constinit Kernel<void(Tensor& x, double low, double high)> clamp{"clamp"};

}  // namespace kernels
}  // namespace engram
