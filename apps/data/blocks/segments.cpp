#include "apps/data/blocks/segments.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram::data {
namespace {

constexpr int kShortestDrawn = 5, kDeviation = 5, kMostAbove = 15;
constexpr double kFullLengthShare = 0.95;

/// Old tokens that a block at `position` reads again.
int extension_at(const SegmentRule& rule, std::int64_t position) {
  return static_cast<int>(std::min<std::int64_t>(rule.extension, position));
}

void require_rule(const SegmentRule& rule) {
  if (rule.segment < 1) throw UsageError(text("segments: a segment must have at least 1 token, got ", rule.segment));
  if (rule.extension < 0) throw UsageError(text("segments: the extension must be at least 0, got ", rule.extension));
  if (rule.latest_half && rule.segment < 2)
    throw UsageError("segments: the latest half of a segment needs one of at least 2 tokens, got 1");
  if (rule.latest_half && rule.extension > 0)
    throw UsageError(text("segments: predicting from the latest half works without an extension, got one of ",
                          rule.extension, "\n  the half loss that overlaps has an extension in its place"));
}

}  // namespace

SegmentRule half_loss(int length, HalfLoss advance) {
  if (length < 2 || length % 2 != 0)
    throw UsageError(text("half loss: the length must be even and at least 2, got ", length));
  if (advance == HalfLoss::overlap) return {.segment = length / 2, .extension = length / 2};
  return {.segment = length, .latest_half = true};
}

std::string text_of(const SegmentRule& rule) {
  return text("segments", rule.extension > 0 ? text(", extension ", rule.extension) : std::string(),
              rule.drawn_lengths ? ", lengths drawn" : "", rule.latest_half ? ", latest half" : "");
}

int drawn_length(int segment, std::uint64_t seed, std::uint64_t counter) {
  // Keeps these numbers apart from those of other readers, dropout and initialisers with the same seed: "SEGM".
  constexpr std::uint32_t kSegments = 0x5345474D;
  const auto low = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  const PhiloxBlock words = philox({{low(counter), low(counter >> 32), 0, kSegments}}, low(seed), low(seed >> 32));
  const auto uniform = [&words](int i) { return (static_cast<double>(words.word[i]) + 0.5) * 0x1p-32; };
  const double base = uniform(0) < kFullLengthShare ? segment : segment / 2.0;
  // Box and Muller (1958).
  const double normal = std::sqrt(-2 * std::log(uniform(1))) * std::cos(2 * std::numbers::pi * uniform(2));
  const int length = static_cast<int>(base + kDeviation * normal);
  return std::clamp(length, kShortestDrawn, segment + kMostAbove);
}

void fill_segment(TokenView tokens, const SegmentRule& rule, std::int64_t position, int length, int context, int rows,
                  std::int64_t row_length, Block& block) {
  const int extension = extension_at(rule, position);
  const int columns = extension + length, predicted = columns - context;
  const auto targets = static_cast<std::size_t>(rows) * static_cast<std::size_t>(predicted);
  block.rows = rows;
  block.length = columns;
  block.context = context;
  block.fed_again = extension_at(rule, position + length);
  block.clear_articles();
  block.inputs.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  block.targets.resize(targets);
  block.scored.assign(targets, 1);
  block.scored_count = static_cast<std::int64_t>(targets);
  block.zero_caches = position == 0;
  block.first = position - extension;
  block.stride = row_length;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = block.first + row * row_length;
    tokens.copy(start, columns, block.inputs.data() + row * columns);
    tokens.copy(start + context + 1, predicted, block.targets.data() + row * predicted);
  }
}

SegmentReader::SegmentReader(TokenView tokens, int rows, const SegmentRule& rule, std::uint64_t seed)
    : tokens_(tokens), rule_(rule), row_length_(0) {
  require_rule(rule);
  if (rows < 1) throw UsageError(text("segments: the number of rows (batch) must be at least 1, got ", rows));
  row_length_ = tokens.size() / rows;
  state_ = {.total = tokens.size(), .rows = rows, .block = rule.segment, .seed = seed, .rule = text_of(rule)};
  if (row_length_ < 2)
    throw UsageError(text("segments: each of the ", rows, " rows (batch) needs at least 2 tokens, an input and a ",
                          "target, got ", tokens.size(),
                          " tokens in all\n  take fewer rows (training.batch) or a longer text"));
  // The longest half that a first segment can leave without targets.
  const int unscored = rule.latest_half ? (longest_block() + 1) / 2 : 0;
  if (row_length_ - 1 <= unscored)
    throw UsageError(text("segments: a row must be longer than half a segment plus one token, ", unscored + 1, ", got ",
                          row_length_, " tokens in each of ", rows, " rows (batch)",
                          "\n  take fewer rows (training.batch), shorter segments (training.block) or a longer text"));
}

int SegmentReader::longest_block() const {
  return rule_.extension + rule_.segment + (rule_.drawn_lengths ? kMostAbove : 0);
}

SegmentReader::Next SegmentReader::plan() const {
  const int full = rule_.drawn_lengths ? drawn_length(rule_.segment, state_.seed, state_.blocks) : rule_.segment;
  const int length = static_cast<int>(std::min<std::int64_t>(full, row_length_ - 1 - state_.position));
  const int context = rule_.latest_half ? (full + 1) / 2 : extension_at(rule_, state_.position);
  // What is left of the row may lie in the half that has no targets.
  if (rule_.latest_half && length <= context) return {};
  return {length, context};
}

void SegmentReader::next(Block& block) {
  Next next = plan();
  if (next.length <= 0) {
    state_.position = 0;
    ++state_.wraps;
    next = plan();
  }
  fill_segment(tokens_, rule_, state_.position, next.length, next.context, state_.rows, row_length_, block);
  state_.position += next.length;
  ++state_.blocks;
}

bool SegmentReader::accepts(const ReaderState& state) const {
  return state.total == state_.total && state.rows == state_.rows && state.block == state_.block &&
         state.rule == state_.rule && state.position >= 0 && state.position < row_length_;
}

void SegmentReader::restore(const ReaderState& state) {
  if (!accepts(state)) refuse_state(state_, state);
  state_ = state;
}

}  // namespace engram::data
