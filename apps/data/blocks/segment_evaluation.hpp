#pragma once
/// Two ways through a split that give a model old tokens to read before the new ones that it predicts (Block::context).
/// Neither scores a token twice.

#include <algorithm>
#include <cstdint>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/data/blocks/segments.hpp"

namespace engram::data {

/// One pass of SegmentReader without drawn lengths: B rows of T = floor(total / B) tokens, every token of a row but its
/// first scored once. With one row that is every token of the split but the first.
class SegmentEvaluation final : public EvaluationPlan {
 public:
  /// `segment`: new tokens a block, S; `extension`: old ones before them. Throws UsageError for S or B below 1, a
  /// negative extension, and T < 2.
  SegmentEvaluation(TokenView tokens, int segment, int extension = 0, int rows = 1);
  void begin() override { position_ = 0; }
  bool next(Block& block) override;
  /// ceil((T - 1) / S).
  std::int64_t block_count() const override { return (row_length_ - 2) / rule_.segment + 1; }
  /// B (T - 1).
  std::int64_t scored_count() const override { return rows_ * (row_length_ - 1); }
  std::int64_t longest_block() const override {
    return std::min<std::int64_t>(std::int64_t{rule_.segment} + rule_.extension, row_length_ - 1);
  }

 private:
  TokenView tokens_;
  SegmentRule rule_;
  int rows_;
  std::int64_t row_length_;
  std::int64_t position_ = 0;
};

/// For models without memory ([transformer-xl 1.9]): a window of L tokens moves on by s, and what is new in it is
/// scored, so that every token of the split but the first is scored once, after at least L - s tokens before it; at the
/// start windows are shorter. Every window is a row of its own, read from nothing: blocks all have zero_caches, B
/// windows each where they are L long, one where they are shorter (at the start and the end).
class SlidingEvaluation final : public EvaluationPlan {
 public:
  /// L = `window`, s = `stride`, B = `rows`. Throws UsageError for L or B below 1, s outside 1 to L, and fewer than two
  /// tokens.
  SlidingEvaluation(TokenView tokens, int window, int stride, int rows = 1);
  void begin() override { done_ = 0; }
  bool next(Block& block) override;
  std::int64_t block_count() const override;
  std::int64_t scored_count() const override { return tokens_.size() - 1; }
  std::int64_t longest_block() const override {
    return std::min<std::int64_t>(std::int64_t{rule_.segment} + rule_.extension, tokens_.size() - 1);
  }
  std::int64_t window_count() const { return (tokens_.size() - 2) / rule_.segment + 1; }

 private:
  /// Windows at the start that are shorter than L because nothing is before them.
  std::int64_t short_windows() const;

  TokenView tokens_;
  SegmentRule rule_;  // s new tokens after an extension of L - s
  int rows_;
  std::int64_t done_ = 0;  // windows
};

}  // namespace engram::data
