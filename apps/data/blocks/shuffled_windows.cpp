#include "apps/data/blocks/shuffled_windows.hpp"

#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram::data {
namespace {

constexpr std::uint32_t kRounds = 8;

/// A permutation of the numbers of 2 `half` bits.
std::uint64_t feistel(std::uint64_t number, int half, std::uint64_t seed, std::uint64_t epoch) {
  // Keeps these numbers apart from those of other readers, dropout and initialisers with the same seed: "SHUF".
  constexpr std::uint32_t kShuffle = 0x53485546;
  const auto low = [](std::uint64_t wide) { return static_cast<std::uint32_t>(wide); };
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t left = number >> half, right = number & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock drawn = philox({{low(right), round, low(epoch), kShuffle}}, low(seed), low(seed >> 32));
    const std::uint64_t mixed = left ^ (drawn.word[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half | right;
}

}  // namespace

std::int64_t shuffled(std::int64_t index, std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  int half = 1;
  while ((std::int64_t{1} << 2 * half) < count) ++half;
  auto number = static_cast<std::uint64_t>(index);
  do number = feistel(number, half, seed, epoch);
  while (number >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(number);
}

ShuffledWindows::ShuffledWindows(TokenView tokens, int rows, int block, std::uint64_t seed)
    : tokens_(tokens), windows_(0) {
  if (rows < 1) throw UsageError(text("shuffled windows: the number of rows (batch) must be at least 1, got ", rows));
  if (block < 1) throw UsageError(text("shuffled windows: a window must have at least 1 token, got ", block));
  windows_ = (tokens.size() - 1) / block;
  if (windows_ < 1)
    throw UsageError(text("shuffled windows: a window and its last target need ", block + std::int64_t{1},
                          " tokens, got ", tokens.size(), "\n  take shorter blocks (training.block) or a longer text"));
  state_.total = tokens.size();
  state_.rows = rows;
  state_.block = block;
  state_.seed = seed;
  state_.rule = "shuffled windows";
}

void ShuffledWindows::next(Block& block) {
  const int rows = state_.rows, length = state_.block;
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(length);
  block.rows = rows;
  block.length = length;
  block.context = block.fed_again = 0;
  block.clear_articles();
  block.inputs.resize(count);
  block.targets.resize(count);
  block.scored.assign(count, 1);
  block.scored_count = static_cast<std::int64_t>(count);
  block.zero_caches = true;
  block.first = block.stride = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = length * shuffled(state_.position, windows_, state_.seed, state_.wraps);
    tokens_.copy(start, length, block.inputs.data() + row * length);
    tokens_.copy(start + 1, length, block.targets.data() + row * length);
    if (++state_.position < windows_) continue;
    state_.position = 0;
    ++state_.wraps;
  }
  ++state_.blocks;
}

bool ShuffledWindows::accepts(const ReaderState& state) const {
  return state.total == state_.total && state.rows == state_.rows && state.block == state_.block &&
         state.rule == state_.rule && state.position >= 0 && state.position < windows_;
}

void ShuffledWindows::restore(const ReaderState& state) {
  if (!accepts(state)) refuse_state(state_, state);
  state_ = state;
}

}  // namespace engram::data
