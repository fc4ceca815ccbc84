#pragma once
/// Everything that defines an all-attention network or its Transformer baseline, and what is refused.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernels/attention.hpp"
#include "nn/memory/past.hpp"

namespace engram {

/// Where a layer's memory of facts is. Spec of the all-attention family, section 3.
enum class MemoryMode : std::uint8_t {
  all,         ///< persistent slots in the softmax of attention; no feed-forward
  none,        ///< neither persistent slots nor feed-forward: the ablation N = 0
  transformer  ///< the standard layer: attention, then a ReLU feed-forward sublayer
};

struct AllAttentionOptions {
  MemoryMode memory_mode = MemoryMode::all;
  std::int64_t vocabulary = 0;   ///< V, symbols
  std::int64_t layers = 0;       ///< L
  std::int64_t width = 0;        ///< d, of the hidden states
  std::int64_t heads = 0;        ///< H, must divide width
  std::int64_t inner = 0;        ///< F, width of the feed-forward sublayer (memory_mode transformer)
  std::int64_t slots = 0;        ///< N, persistent slots per head (memory_mode all)
  std::int64_t max_span = 0;     ///< S, positions
  bool adaptive_span = true;     ///< false: every head sees all S positions
  std::int64_t ramp = 32;        ///< R, positions
  double span_init = 0;          ///< zeta at the start, in [0, 1]
  std::int64_t mask_offset = 0;  ///< 1: the paper's mask argument
  RampGradient ramp_gradient = RampGradient::inclusive;
  Pad pad = Pad::attend_zero;
  /// c_1 < ... < c_K < V: the vocabulary, most frequent words first, is in K + 1 clusters whose widths are d / 4^i, for
  /// input and output. Empty: one table of width d, and a linear output of its own.
  std::vector<std::int64_t> cutoffs = {};
  bool tie_tables = true;        ///< clusters: one table E_i for input and output
  bool tie_projections = true;   ///< clusters: one projection P_i for input and output
  double dropout = 0;            ///< on attention weights and feed-forward activations, in [0, 1)
  double embedding_dropout = 0;  ///< on embeddings and on the last hidden states, in [0, 1)
  /// MiB of attention weights that all layers together keep for the backward pass of one piece of a batch; layers whose
  /// share is not enough compute them again, which takes longer. 0: nothing is kept.
  std::int64_t attention_memory = 1024;

  /// Throws UsageError naming the option and its value.
  void check() const;
};

std::string_view name_of(MemoryMode mode);
std::string_view name_of(Pad pad);
std::string_view name_of(RampGradient mode);
/// Throw UsageError listing the valid names.
MemoryMode parse_memory_mode(std::string_view name);
Pad parse_pad(std::string_view name);
RampGradient parse_ramp_gradient(std::string_view name);

}  // namespace engram
