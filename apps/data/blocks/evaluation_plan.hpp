#pragma once
/// Three ways through a split for measuring a model; each gives a list of blocks and says which targets count.
///
/// - full: the papers' way: B rows from position 0, whole blocks only, so that the last tokens of every row go unscored
/// - exact: every token of the split but the first is scored once, in a last short block too
/// - short: a few blocks while training, going on where the last pass stopped; pessimistic (it starts from empty caches
///   in as many places as there are rows) and covering only a part
///
/// The mean over blocks equals the mean over tokens only for `full` and `short`: weigh by Block::scored_count.

#include <cstdint>
#include <memory>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/data/files/token_view.hpp"

namespace engram::data {

/// One pass over (part of) a split.
class EvaluationPlan {
 public:
  virtual ~EvaluationPlan() = default;
  /// Starts another pass.
  virtual void begin() = 0;
  /// Fills the next block; false when the pass is over. The first pass needs no begin().
  virtual bool next(Block& block) = 0;
  /// Blocks in a pass.
  virtual std::int64_t block_count() const = 0;
  /// Targets that a pass scores.
  virtual std::int64_t scored_count() const = 0;
  /// Inputs of a row in the longest block of a pass.
  virtual std::int64_t longest_block() const = 0;
};

/// B rows of T = floor(total / B) tokens, floor((T - 1) / M) blocks of M. Not scored: the first token of each row, up
/// to M - 1 at its end, and total mod B.
class FullEvaluation final : public EvaluationPlan {
 public:
  static constexpr int kUsualRows = 8;
  /// Throws UsageError for B or M below 1 and for T <= M.
  FullEvaluation(TokenView tokens, int block, int rows = kUsualRows);
  void begin() override { done_ = 0; }
  bool next(Block& block) override;
  std::int64_t block_count() const override { return (row_length_ - 1) / block_; }
  std::int64_t scored_count() const override { return block_count() * rows_ * block_; }
  std::int64_t longest_block() const override { return block_; }

 private:
  TokenView tokens_;
  int rows_;
  int block_;
  std::int64_t row_length_;
  std::int64_t done_ = 0;
};

/// With one row, a single run from the first token to the last. With B rows, row b > 0 starts `carry_over` tokens
/// before the ones it scores, so that its caches hold what one long run would have put there; all rows are then
/// n = ceil((total - 1 + (B - 1) * carry_over) / B) inputs long, and row 0 scores all of its targets. A model whose L
/// layers see S positions back has the reach L * S: with at least that carry-over the result is that of one row.
/// Past the end of the text, inputs and targets are token 0 and unscored.
class ExactEvaluation final : public EvaluationPlan {
 public:
  /// Throws UsageError for B or M below 1, for fewer than two tokens, and with B > 1 for a carry_over below 1 or one
  /// that the text is too short for.
  ExactEvaluation(TokenView tokens, int block, int rows = 1, std::int64_t carry_over = 0);
  void begin() override { done_ = 0; }
  bool next(Block& block) override;
  std::int64_t block_count() const override { return (row_inputs_ + block_ - 1) / block_; }
  std::int64_t scored_count() const override { return tokens_.size() - 1; }
  std::int64_t longest_block() const override { return block_; }

 private:
  TokenView tokens_;
  int rows_;
  int block_;
  std::int64_t carry_over_;
  std::int64_t row_inputs_;
  std::int64_t done_ = 0;  // inputs of each row that were handed out
};

/// min(steps / 10, ceil(T / M)) blocks a pass, at least one, of a StreamReader with the batch and block of training.
/// The model needs caches for this of its own, kept between passes; Block::zero_caches says when to clear them.
class ShortValidation final : public EvaluationPlan {
 public:
  /// `steps`: training steps between two passes. Throws as StreamReader.
  ShortValidation(TokenView tokens, int block, int rows, std::int64_t steps, std::uint64_t seed);
  /// So many blocks a pass of another reader.
  ShortValidation(std::unique_ptr<BlockReader> reader, std::int64_t blocks);
  /// Goes on where the last pass stopped.
  void begin() override { done_ = 0; }
  bool next(Block& block) override;
  std::int64_t block_count() const override { return blocks_; }
  /// Of a reader of segments an upper bound.
  std::int64_t scored_count() const override;
  std::int64_t longest_block() const override { return reader_->state().block; }

  const ReaderState& state() const { return reader_->state(); }
  bool accepts(const ReaderState& state) const { return reader_->accepts(state); }
  /// Throws as StreamReader::restore. The next pass starts there.
  void restore(const ReaderState& state);

 private:
  std::unique_ptr<BlockReader> reader_;
  std::int64_t blocks_;
  std::int64_t done_ = 0;
};

}  // namespace engram::data
