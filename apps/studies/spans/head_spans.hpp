#pragma once
/// How far the heads of a model look back, and what that saves. [all-attention 1.6, 9].

#include <cstdint>
#include <vector>

#include "nn/checkpoint.hpp"
#include "nn/models/all_attention_options.hpp"

namespace engram {

struct HeadSpan {
  double zeta = 0;             ///< share of the longest span, in [0, 1]; 1 when spans are fixed
  double span = 0;             ///< z = S zeta, positions
  std::int64_t positions = 0;  ///< that the head sees: min(S, ceil(z) + R); S when fixed
};
using LayerSpans = std::vector<HeadSpan>;

/// From zeta of every layer and head; ignored when the model's spans are fixed.
std::vector<LayerSpans> spans_of(const AllAttentionOptions& model, const std::vector<std::vector<double>>& zeta);
/// From the span tensors of a checkpoint, or, where spans are computed for every query, their means that a run's
/// checkpoint keeps; nothing else of it is read. Throws UsageError when those are not there, and FileError when one is
/// missing, has another shape or holds a number outside [0, 1].
std::vector<LayerSpans> read_spans(const CheckpointFile& file, const AllAttentionOptions& model);

/// Of one layer, positions that its heads see.
struct LayerRange {
  std::int64_t least = 0, most = 0;
  double mean = 0;
};
LayerRange range_of(const LayerSpans& heads);

struct SpanStatistics {
  double mean_positions = 0;        ///< that a head sees
  std::int64_t most_positions = 0;  ///< of any head
  /// The released code's average: mean over layers of clamp(ceil(S mean zeta) + R, 0, S); and the largest of these.
  double released_mean = 0;
  double released_most = 0;
  /// FLOPs per token of attention to the context (projecting the past included), training: as computed, every head with
  /// its own window; with the longest window of its layer; with the longest span.
  double flops_ragged = 0, flops_layer = 0, flops_full = 0;
};
/// `block`: M of training.
SpanStatistics span_statistics(const AllAttentionOptions& model, const std::vector<LayerSpans>& layers,
                               std::int64_t block);

}  // namespace engram
