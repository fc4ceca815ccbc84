#include "apps/data/blocks/article_reader.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "apps/data/blocks/shuffled_windows.hpp"
#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/hash.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// The article that is number `i` of the pass.
std::int64_t article_at(const ArticleOrder& order, std::int64_t i, std::int64_t articles) {
  return order.shuffled ? shuffled(i, articles, order.seed, order.epoch) : i;
}

}  // namespace

ArticleStreams::ArticleStreams(std::string_view what, const ArticleSplit& split, int rows, int block) : split_(split) {
  if (rows < 1) throw UsageError(text(what, ": the number of rows (batch) must be at least 1, got ", rows));
  if (block < 1) throw UsageError(text(what, ": the block length must be at least 1, got ", block));
  if (split.starts.empty() || split.tokens.size() < 1)
    throw UsageError(text(what, ": data with articles are needed, got ", split.tokens.size(),
                          " tokens without articles\n  prepare the text with engram prepare --kind word --articles"));
  require_article_starts(what, split.starts, split.tokens.size());
  for (std::int64_t article = 0; article < split.articles(); ++article)
    if (split.length(article) > std::numeric_limits<std::int32_t>::max())
      throw UsageError(text(what, ": an article may have at most 2147483647 tokens, got ", split.length(article),
                            " in article ", article));
  streams_.resize(static_cast<std::size_t>(rows));
  begin({});
}

void ArticleStreams::begin(const ArticleOrder& order) {
  order_ = order;
  taken_ = 0;
  std::ranges::fill(streams_, Stream{});
}

bool ArticleStreams::take(Stream& stream) {
  if (taken_ == split_.articles()) return false;
  const std::int64_t article = article_at(order_, taken_++, split_.articles());
  stream.begin = stream.place = split_.starts[static_cast<std::size_t>(article)];
  stream.end = stream.begin + split_.length(article);
  return true;
}

std::int64_t ArticleStreams::pass_length(const ArticleOrder& order) const {
  // When each stream is free, the earliest first.
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
  for (std::size_t i = 0; i < streams_.size(); ++i) free.push(0);
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < split_.articles(); ++i) {
    const std::int64_t end = free.top() + split_.length(article_at(order, i, split_.articles()));
    free.pop();
    free.push(end);
    last = std::max(last, end);
  }
  return last;
}

void ArticleStreams::skip(std::int64_t positions) {
  // Streams by the position that they need an article at, and by number where several need one at the same.
  using Need = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Need, std::vector<Need>, std::greater<>> needs;
  const auto go_on = [&](std::int64_t at, std::size_t row) {
    Stream& stream = streams_[row];
    const std::int64_t left = stream.end - stream.place;
    if (at + left < positions) {
      stream.place = stream.end;
      needs.emplace(at + left, row);
    } else {
      stream.place += positions - at;
    }
  };
  for (std::size_t row = 0; row < streams_.size(); ++row) go_on(0, row);
  while (!needs.empty()) {
    const auto [at, row] = needs.top();
    needs.pop();
    if (take(streams_[row])) go_on(at, row);
  }
}

void ArticleStreams::fill(int length, Block& block) {
  const std::size_t rows = streams_.size(), columns = static_cast<std::size_t>(length), count = rows * columns;
  block.rows = static_cast<int>(rows);
  block.length = length;
  block.context = block.fed_again = 0;
  block.first = block.stride = 0;
  block.inputs.assign(count, 0);
  block.targets.assign(count, 0);
  block.scored.assign(count, 0);
  block.preceding.assign(count, 0);
  block.places.assign(count, -1);
  block.scored_count = 0;
  // Position by position: which stream takes the next article depends on where all others are.
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t row = 0; row < rows; ++row) {
      Stream& stream = streams_[row];
      if (stream.place == stream.end && !take(stream)) continue;
      const std::size_t i = row * columns + column;
      block.inputs[i] = stream.place == stream.begin ? split_.start : split_.tokens[stream.place - 1];
      block.targets[i] = split_.tokens[stream.place];
      block.scored[i] = 1;
      block.preceding[i] = static_cast<std::int32_t>(stream.place - stream.begin);
      block.places[i] = stream.place++;
      ++block.scored_count;
    }
}

ArticleReader::ArticleReader(const ArticleSplit& split, int rows, int block, std::uint64_t seed, bool shuffled)
    : streams_("article reader", split, rows, block), shuffled_(shuffled) {
  state_ = {.total = split.tokens.size(),
            .rows = rows,
            .block = block,
            .seed = seed,
            .rule = text(shuffled ? "articles, " : "articles in order, ", split.articles(), " of ",
                         hash_text(hash_of_starts(split.starts)))};
  streams_.begin(order_of(state_));
  epoch_blocks_ = blocks_in(state_);
}

std::int64_t ArticleReader::blocks_in(const ReaderState& state) const {
  return (streams_.pass_length(order_of(state)) + state_.block - 1) / state_.block;
}

int ArticleReader::idle_streams() const {
  return static_cast<int>(std::max<std::int64_t>(0, state_.rows - streams_.split().articles()));
}

void ArticleReader::next(Block& block) {
  if (state_.position == epoch_blocks_) {
    state_.position = 0;
    ++state_.wraps;
    streams_.begin(order_of(state_));
    epoch_blocks_ = blocks_in(state_);
  }
  streams_.fill(state_.block, block);
  block.zero_caches = state_.position == 0;
  ++state_.position;
  ++state_.blocks;
}

bool ArticleReader::accepts(const ReaderState& state) const {
  return state.total == state_.total && state.rows == state_.rows && state.block == state_.block &&
         state.rule == state_.rule && state.position >= 0 && state.position <= blocks_in(state);
}

void ArticleReader::restore(const ReaderState& state) {
  if (!accepts(state)) refuse_state(state_, state);
  state_ = state;
  epoch_blocks_ = blocks_in(state_);
  streams_.begin(order_of(state_));
  streams_.skip(state_.position * state_.block);
}

ArticleEvaluation::ArticleEvaluation(const ArticleSplit& split, int block, int rows)
    : streams_("evaluation of articles", split, rows, block), block_(block), pass_length_(streams_.pass_length({})) {}

void ArticleEvaluation::begin() {
  streams_.begin({});
  done_ = 0;
}

bool ArticleEvaluation::next(Block& block) {
  if (done_ == pass_length_) return false;
  const std::int64_t length = std::min<std::int64_t>(block_, pass_length_ - done_);
  streams_.fill(static_cast<int>(length), block);
  block.zero_caches = done_ == 0;
  done_ += length;
  return true;
}

}  // namespace engram::data
