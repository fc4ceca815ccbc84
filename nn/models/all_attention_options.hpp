#pragma once
/// Everything that defines an all-attention network or its Transformer baseline, and what is refused.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernels/attention.hpp"
#include "core/names.hpp"
#include "nn/layers/adaptive_embedding.hpp"
#include "nn/layers/attention_span.hpp"
#include "nn/layers/attention_start.hpp"
#include "nn/layers/memory_mode.hpp"
#include "nn/layers/product_key_options.hpp"
#include "nn/past/past.hpp"

namespace engram {

/// Relative positions on the value side ([all-attention 0], choice 2): the paper prints them, the released models have
/// none.
enum class PositionValues : std::uint8_t {
  none,    ///< positions change the scores only
  shared,  ///< the table of the keys serves the values too
  own      ///< a second table
};
constexpr auto names_of(PositionValues) {
  return std::to_array<Named<PositionValues>>(
      {{PositionValues::none, "none"}, {PositionValues::shared, "shared"}, {PositionValues::own, "own"}});
}

struct AllAttentionOptions {
  MemoryMode memory_mode = MemoryMode::all;
  std::int64_t vocabulary = 0;  ///< V, symbols
  std::int64_t layers = 0;      ///< L
  std::int64_t width = 0;       ///< d, of the hidden states
  std::int64_t heads = 0;       ///< H, must divide width
  std::int64_t inner =
      0;  ///< F, width of the feed-forward sublayer (transformer), or slots of the one in its place (ff_attn)
  std::int64_t slots = 0;     ///< N, persistent slots per head, or of the one set of single_head
  std::int64_t max_span = 0;  ///< S, positions
  SpanKind span = SpanKind::adaptive;
  std::int64_t ramp = 32;        ///< R, positions
  double span_init = 0;          ///< zeta at the start, in [0, 1] (span adaptive)
  std::int64_t mask_offset = 0;  ///< 1: the paper's mask argument
  RampGradient ramp_gradient = RampGradient::inclusive;
  Pad pad = Pad::attend_zero;
  PositionValues position_values = PositionValues::none;
  AttentionStart attention_init = AttentionStart::inverse_root;
  /// c_1 < ... < c_K < V: the vocabulary, most frequent words first, is in K + 1 clusters whose widths are d / 4^i, for
  /// input and output. Empty: one table of width d, and a linear output of its own.
  std::vector<std::int64_t> cutoffs = {};
  bool tie_tables = true;       ///< clusters: one table E_i for input and output
  bool tie_projections = true;  ///< clusters: one projection P_i for input and output
  TableInit table_init = TableInit::unit;
  double dropout = 0;            ///< on attention weights and feed-forward activations, in [0, 1)
  double embedding_dropout = 0;  ///< on embeddings and on the last hidden states, in [0, 1)
  /// MiB of attention weights that all layers together keep for the backward pass of one piece of a batch; layers whose
  /// share is not enough compute them again, which takes longer. 0: nothing is kept.
  std::int64_t attention_memory = 1024;
  ProductKeyOptions memories = {};  ///< memories that are looked up, in some of the layers

  /// Heads of each layer that look at the context: half of them for head_split, else all.
  std::int64_t context_heads() const { return engram::context_heads(memory_mode, heads); }
  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
