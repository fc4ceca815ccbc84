#include "apps/data/blocks/segment_evaluation.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram::data {
namespace {

void require_two_tokens(TokenView tokens, int rows) {
  if (rows < 1) throw UsageError(text("evaluation: the number of rows must be at least 1, got ", rows));
  if (tokens.size() / rows < 2)
    throw UsageError(text("evaluation: each of the ", rows, " rows needs at least 2 tokens, an input and a target, ",
                          "got ", tokens.size(), " tokens in all\n  ",
                          tokens.size() < 2 ? "prepare a longer split"
                                            : "--exact scores a split of any length; --batch takes fewer rows"));
}

}  // namespace

SegmentEvaluation::SegmentEvaluation(TokenView tokens, int segment, int extension, int rows)
    : tokens_(tokens), rule_{.segment = segment, .extension = extension}, rows_(rows), row_length_(0) {
  if (segment < 1) throw UsageError(text("evaluation: a segment must have at least 1 token, got ", segment));
  if (extension < 0) throw UsageError(text("evaluation: the extension must be at least 0, got ", extension));
  require_two_tokens(tokens, rows);
  row_length_ = tokens.size() / rows;
}

bool SegmentEvaluation::next(Block& block) {
  const int length = static_cast<int>(std::min<std::int64_t>(rule_.segment, row_length_ - 1 - position_));
  if (length <= 0) return false;
  const int context = static_cast<int>(std::min<std::int64_t>(rule_.extension, position_));
  fill_segment(tokens_, rule_, position_, length, context, rows_, row_length_, block);
  position_ += length;
  return true;
}

SlidingEvaluation::SlidingEvaluation(TokenView tokens, int window, int stride, int rows)
    : tokens_(tokens), rule_{.segment = stride, .extension = window - stride}, rows_(rows) {
  if (window < 1) throw UsageError(text("sliding evaluation: a window must have at least 1 token, got ", window));
  if (stride < 1 || stride > window)
    throw UsageError(text("sliding evaluation: the stride must be from 1 to the window's ", window, " tokens, got ",
                          stride, "\n  a longer one would leave tokens out"));
  if (rows < 1) throw UsageError(text("sliding evaluation: the number of rows must be at least 1, got ", rows));
  require_two_tokens(tokens, 1);
}

bool SlidingEvaluation::next(Block& block) {
  if (done_ == window_count()) return false;
  const std::int64_t position = done_ * rule_.segment, inputs = tokens_.size() - 1;
  const int context = static_cast<int>(std::min<std::int64_t>(rule_.extension, position));
  const int length = static_cast<int>(std::min<std::int64_t>(rule_.segment, inputs - position));
  const bool is_full = context == rule_.extension && length == rule_.segment;
  const int windows = is_full ? static_cast<int>(std::min<std::int64_t>(rows_, inputs / rule_.segment - done_)) : 1;
  fill_segment(tokens_, rule_, position, length, context, windows, rule_.segment, block);
  block.zero_caches = true;
  block.fed_again = 0;
  done_ += windows;
  return true;
}

std::int64_t SlidingEvaluation::short_windows() const {
  return std::min<std::int64_t>((rule_.extension + rule_.segment - 1) / rule_.segment, window_count());
}

std::int64_t SlidingEvaluation::block_count() const {
  const std::int64_t first = short_windows();
  const std::int64_t whole = std::max<std::int64_t>(0, (tokens_.size() - 1) / rule_.segment - first);
  const std::int64_t last = window_count() - first - whole;  // 1 where the text ends inside a window
  return first + (whole + rows_ - 1) / rows_ + last;
}

}  // namespace engram::data
