#include "apps/data/blocks/evaluation_plan.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram::data {

FullEvaluation::FullEvaluation(TokenView tokens, int block, int rows) : tokens_(tokens), rows_(rows), block_(block) {
  check_rows("full evaluation", tokens.size(), rows, block, {.batch = "--batch", .block = "--block"},
             "\n  exact evaluation (engram evaluate --exact) scores a split of any length");
  row_length_ = tokens.size() / rows;
}

bool FullEvaluation::next(Block& block) {
  if (done_ == block_count()) return false;
  fill_block(tokens_, done_ * block_, row_length_, rows_, block_, block);
  block.zero_caches = done_ == 0;
  ++done_;
  return true;
}

ExactEvaluation::ExactEvaluation(TokenView tokens, int block, int rows, std::int64_t carry_over)
    : tokens_(tokens), rows_(rows), block_(block), carry_over_(rows == 1 ? 0 : carry_over) {
  if (rows < 1) throw UsageError(text("exact evaluation: the number of rows must be at least 1, got ", rows));
  if (block < 1) throw UsageError(text("exact evaluation: the block length must be at least 1, got ", block));
  if (tokens.size() < 2)
    throw UsageError(text("exact evaluation: at least 2 tokens are needed, an input and a target, got ", tokens.size(),
                          "\n  prepare a longer split"));
  const std::int64_t targets = tokens.size() - 1;
  if (rows > 1 && (carry_over < 1 || carry_over >= targets))
    throw UsageError(text("exact evaluation: with ", rows, " rows the carry-over must be from 1 to ", targets - 1,
                          " tokens (below the ", targets, " targets), got ", carry_over,
                          "\n  take layers * span, or one row"));
  row_inputs_ = (targets + (rows - 1) * carry_over_ + rows - 1) / rows;
}

bool ExactEvaluation::next(Block& block) {
  if (done_ == row_inputs_) return false;
  const std::int64_t length = std::min<std::int64_t>(block_, row_inputs_ - done_);
  const auto count = static_cast<std::size_t>(rows_ * length);
  block.rows = rows_;
  block.length = static_cast<int>(length);
  block.context = block.fed_again = 0;
  block.clear_articles();
  block.inputs.assign(count, 0);
  block.targets.assign(count, 0);
  block.scored.assign(count, 0);
  block.scored_count = 0;
  block.zero_caches = done_ == 0;
  block.first = done_;
  block.stride = row_inputs_ - carry_over_;
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t step = done_ + i;
      const std::int64_t at = row * (row_inputs_ - carry_over_) + step;
      if (at + 1 >= tokens_.size()) break;
      const auto index = static_cast<std::size_t>(row * length + i);
      block.inputs[index] = tokens_[at];
      block.targets[index] = tokens_[at + 1];
      block.scored[index] = row == 0 || step >= carry_over_;
      block.scored_count += block.scored[index];
    }
  }
  done_ += length;
  return true;
}

ShortValidation::ShortValidation(TokenView tokens, int block, int rows, std::int64_t steps, std::uint64_t seed)
    : reader_(std::make_unique<StreamReader>(tokens, rows, block, seed)),
      blocks_(std::max<std::int64_t>(1, std::min(steps / 10, (tokens.size() / rows + block - 1) / block))) {}

ShortValidation::ShortValidation(std::unique_ptr<BlockReader> reader, std::int64_t blocks)
    : reader_(std::move(reader)), blocks_(blocks) {
  if (blocks < 1) throw UsageError(text("evaluation: a short validation must have at least 1 block, got ", blocks));
}

bool ShortValidation::next(Block& block) {
  if (done_ == blocks_) return false;
  reader_->next(block);
  ++done_;
  return true;
}

std::int64_t ShortValidation::scored_count() const { return blocks_ * state().rows * state().block; }

void ShortValidation::restore(const ReaderState& state) {
  reader_->restore(state);
  done_ = 0;
}

}  // namespace engram::data
