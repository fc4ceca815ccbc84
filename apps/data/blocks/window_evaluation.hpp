#pragma once
/// A split in windows that lie side by side, for models without memory: the way of the released program of the paper on
/// product-key memory ([product-key 6]). Every window is read from nothing, and its first token is not scored,
/// which nothing in the window predicts.

#include <cstdint>

#include "apps/data/blocks/evaluation_plan.hpp"

namespace engram::data {

class WindowEvaluation final : public EvaluationPlan {
 public:
  /// Windows of L = `window` tokens, of which L - 1 are scored; the last one may be shorter. Blocks of up to B = `rows`
  /// windows, all with zero_caches. Throws UsageError for L below 2, B below 1, and fewer than two tokens.
  WindowEvaluation(TokenView tokens, int window, int rows = 1);
  void begin() override { done_ = 0; }
  bool next(Block& block) override;
  std::int64_t block_count() const override;
  std::int64_t scored_count() const override;
  std::int64_t longest_block() const override;

 private:
  std::int64_t whole() const { return tokens_.size() / window_; }
  /// Targets of the shorter window at the end.
  std::int64_t rest() const;

  TokenView tokens_;
  int window_, rows_;
  std::int64_t done_ = 0;  // windows
};

}  // namespace engram::data
