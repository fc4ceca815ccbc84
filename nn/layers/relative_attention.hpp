#pragma once
/// Multi-head attention over a memory and a segment, with one of the kinds of positions of the Transformer-XL family:
/// Dai et al. (2019), section 3.3; Shaw et al. (2018), eq. 4, keys only; none, where positions are in the input.
/// [transformer-xl 1.3, 1.8].

#include <optional>

#include "autograd/variable.hpp"
#include "nn/layers/attention_trace.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/position_kind.hpp"
#include "nn/past/segment_past.hpp"

namespace engram {

/// What all layers share in one forward pass.
struct RelativePositions {
  std::int64_t distances = 0;   ///< P: the layers' windows hold the distances 0 .. P - 1
  Variable sinusoids;           ///< relative: R after its dropout, [rows, width], row d for distance d
  Tensor rows;                  ///< relative, shaw: which row serves each distance, i32 [P]; empty: its own
  std::int64_t shared = 0;      ///< distances from it on have the same row; 0: none have
  Variable content_bias;        ///< relative: u of all layers, [H d_h]; absent: layers have their own
  Variable position_bias;       ///< relative: v
  std::int64_t remembered = 0;  ///< columns of the block, from the first on, that memories take in
};

struct RelativeAttentionOptions {
  std::int64_t width = 0;  ///< D, of the hidden states
  std::int64_t heads = 0;  ///< H
  std::int64_t depth = 0;  ///< d_h, of each head
  PositionKind positions = PositionKind::relative;
  ShawTerms shaw_terms = ShawTerms::ab;
  std::int64_t position_rows = 0;  ///< L, of the table of distances; shaw only
  bool own_biases = false;         ///< relative: u and v are the layer's own
  double dropout = 0;              ///< on attention weights
  std::int64_t keep_bytes = 0;     ///< of attention weights that may be kept for the backward pass
  Initializer start;               ///< of all weights
  /// Depth of the keys and values that a past for frozen weights keeps: one more than d_h where positions have a number
  /// of their own in the scores.
  std::int64_t key_depth() const {
    return depth + (positions == PositionKind::shaw && shaw_terms == ShawTerms::abcd ? 1 : 0);
  }
};

class RelativeAttention final : public Module {
 public:
  explicit RelativeAttention(const RelativeAttentionOptions& options);

  /// x: [B, M, width], the block; `norm`, if there is one, normalises it and the memory before they are projected
  /// (pre-norm). past: this layer's memory, updated with x, of SegmentPast too. Returns [B, M, width]. Fills `trace`,
  /// if one is given.
  Variable forward(const Variable& x, LayerNorm* norm, SegmentPast& past, const RelativePositions& positions,
                   AttentionTrace* trace = nullptr);
  void visit(Visitor& visit) override;

 private:
  void read_positions(Tape& tape, const Variable& query, SegmentPast& past, const RelativePositions& positions,
                      AttentionVariables& in);
  /// `in` with queries that leave no scores but those of the term. Throws Error for another kind of positions.
  AttentionVariables one_term(ScoreTerm term, const Variable& query, const RelativePositions& positions,
                              AttentionVariables in);
  /// u or v: the layer's own, or what all layers share; absent where there is none.
  static Variable bias(Tape& tape, std::optional<Parameter>& own, const Variable& shared) {
    return own ? tape.parameter(*own) : shared;
  }
  Variable position_keys(Tape& tape, const RelativePositions& positions);
  bool widened() const { return static_cast<bool>(distance_biases_); }

  std::int64_t heads_, depth_;
  PositionKind kind_;
  double dropout_;
  std::int64_t keep_bytes_;
  Parameter query_, key_, value_;      // [a, width] each, a = H d_h; head h owns the rows from h d_h on
  Parameter output_;                   // [width, a]
  std::optional<Parameter> position_;  // relative: W_R, [a, width]
  std::optional<Parameter> content_bias_, position_bias_;  // u, v: [a]; own ones only, and u of shaw abcd
  std::optional<Parameter> distance_keys_;                 // shaw: e, [L, a], row L - 1 - delta
  std::optional<Parameter> distance_biases_;               // shaw abcd: s, [L, H]
};

}  // namespace engram
