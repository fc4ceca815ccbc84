#include "apps/data/blocks/window_evaluation.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram::data {

WindowEvaluation::WindowEvaluation(TokenView tokens, int window, int rows)
    : tokens_(tokens), window_(window), rows_(rows) {
  if (window < 2)
    throw UsageError(
        text("evaluation of windows: a window must have at least 2 tokens, an input and a target, got ", window));
  if (rows < 1) throw UsageError(text("evaluation of windows: the number of rows must be at least 1, got ", rows));
  if (tokens.size() < 2)
    throw UsageError(text("evaluation of windows: at least 2 tokens are needed, got ", tokens.size()));
}

std::int64_t WindowEvaluation::rest() const {
  return std::max<std::int64_t>(0, tokens_.size() - whole() * window_ - 1);
}

bool WindowEvaluation::next(Block& block) {
  const std::int64_t left = whole() - done_;
  if (left < 0 || (left == 0 && rest() == 0)) return false;
  const std::int64_t windows = left == 0 ? 1 : std::min<std::int64_t>(rows_, left);
  const std::int64_t length = left == 0 ? rest() : window_ - 1;
  fill_block(tokens_, done_ * window_, window_, static_cast<int>(windows), static_cast<int>(length), block);
  block.zero_caches = true;
  done_ += windows;
  return true;
}

std::int64_t WindowEvaluation::block_count() const { return (whole() + rows_ - 1) / rows_ + (rest() > 0 ? 1 : 0); }

std::int64_t WindowEvaluation::scored_count() const { return whole() * (window_ - 1) + rest(); }

std::int64_t WindowEvaluation::longest_block() const { return whole() > 0 ? window_ - std::int64_t{1} : rest(); }

}  // namespace engram::data
