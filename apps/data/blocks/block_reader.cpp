#include "apps/data/blocks/block_reader.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/philox.hpp"

namespace engram::data {
namespace {

/// Uniform integer in [0, choices), a pure function of seed and counter.
std::int64_t random_below(std::int64_t choices, std::uint64_t seed, std::uint64_t counter) {
  // Keeps these numbers apart from those that dropout and initialisers draw with the same seed: "READ".
  constexpr std::uint32_t kReader = 0x52454144;
  const auto low = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  const auto n = static_cast<std::uint64_t>(choices);
  const std::uint64_t uneven = (0 - n) % n;  // 2^64 mod n: this many draws would make small results more likely
  for (std::uint32_t attempt = 0;; ++attempt) {
    const PhiloxBlock words =
        philox({{low(counter), low(counter >> 32), attempt, kReader}}, low(seed), low(seed >> 32));
    const std::uint64_t draw = std::uint64_t{words.word[1]} << 32 | words.word[0];
    if (draw >= uneven) return static_cast<std::int64_t>(draw % n);
  }
}

}  // namespace

std::int64_t largest_rows(std::int64_t total, std::int64_t block) { return total / (block + 1); }

void check_rows(std::string_view what, std::int64_t total, int rows, int block, const RowNames& names,
                std::string_view advice) {
  if (rows < 1) throw UsageError(text(what, ": the number of rows (batch) must be at least 1, got ", rows));
  if (block < 1) throw UsageError(text(what, ": the block length must be at least 1, got ", block));
  if (total / rows > block) return;
  const std::int64_t most = largest_rows(total, block), few = most > 0 ? rows : 1, longest = total / few - 1;
  throw UsageError(text(what, ": batch * (block + 1) = ", rows, " * ", block + std::int64_t{1}, " = ",
                        rows * (block + std::int64_t{1}), " tokens are needed, got ", total, "\n  ",
                        most > 0 ? text("the largest workable batch is ", most, " (", names.batch, ")")
                                 : std::string("no batch works with this block length"),
                        longest > 0
                            ? text(", the longest block for a batch of ", few, " is ", longest, " (", names.block, ")")
                            : std::string(),
                        advice));
}

void fill_block(TokenView tokens, std::int64_t first, std::int64_t stride, int rows, int length, Block& block) {
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(length);
  block.rows = rows;
  block.length = length;
  block.context = block.fed_again = 0;
  block.clear_articles();
  block.inputs.resize(count);
  block.targets.resize(count);
  block.scored.assign(count, 1);
  block.scored_count = static_cast<std::int64_t>(count);
  block.first = first;
  block.stride = stride;
  for (std::int64_t row = 0; row < rows; ++row) {
    tokens.copy(first + row * stride, length, block.inputs.data() + row * length);
    tokens.copy(first + row * stride + 1, length, block.targets.data() + row * length);
  }
}

void copy_rows(const Block& whole, std::int64_t begin, std::int64_t end, Block& part) {
  part.rows = static_cast<int>(end - begin);
  part.first_row = whole.first_row + static_cast<int>(begin);
  part.length = whole.length;
  part.context = whole.context;
  part.fed_again = whole.fed_again;
  part.zero_caches = whole.zero_caches;
  part.first = whole.first + begin * whole.stride;
  part.stride = whole.stride;
  const auto copy = [&](const auto& from, auto& to, std::int64_t columns) {
    const auto at = [&](std::int64_t row) { return from.begin() + static_cast<std::ptrdiff_t>(row * columns); };
    if (from.empty())
      to.clear();
    else
      to.assign(at(begin), at(end));
  };
  const std::int64_t columns = whole.length, predicted = columns - whole.context;
  copy(whole.inputs, part.inputs, columns);
  copy(whole.preceding, part.preceding, columns);
  copy(whole.targets, part.targets, predicted);
  copy(whole.scored, part.scored, predicted);
  copy(whole.places, part.places, predicted);
  part.scored_count = std::ranges::count(part.scored, 1);
}

StreamReader::StreamReader(TokenView tokens, int rows, int block, std::uint64_t seed) : tokens_(tokens) {
  check_rows("reader", tokens.size(), rows, block, {}, "; or take a longer text");
  row_length_ = tokens.size() / rows;
  state_.total = tokens.size();
  state_.rows = rows;
  state_.block = block;
  state_.seed = seed;
}

void StreamReader::next(Block& block) {
  block.zero_caches = state_.blocks == 0;
  const std::int64_t end = row_length_ - state_.block;
  if (state_.position >= end) {
    // In rows shorter than 2M not every position below M leaves room for a block and its last target.
    state_.position = random_below(std::min<std::int64_t>(state_.block, end), state_.seed, state_.wraps);
    ++state_.wraps;
    block.zero_caches = true;
  }
  fill_block(tokens_, state_.position, row_length_, state_.rows, state_.block, block);
  state_.position += state_.block;
  ++state_.blocks;
}

bool StreamReader::accepts(const ReaderState& state) const {
  return state.rule.empty() && state.total == state_.total && state.rows == state_.rows &&
         state.block == state_.block && state.position >= 0 && state.position <= row_length_;
}

void StreamReader::restore(const ReaderState& state) {
  if (!accepts(state)) refuse_state(state_, state);
  state_ = state;
}

void refuse_state(const ReaderState& own, const ReaderState& saved) {
  const auto facts = [](const ReaderState& s) {
    return text(s.total, " tokens, batch ", s.rows, ", block ", s.block, ", position ", s.position,
                s.rule.empty() ? "" : ", ", s.rule);
  };
  throw UsageError(text("reader: a saved position must be of the same data, batch and block length (", facts(own),
                        "), got ", facts(saved), "\n  start the reader afresh instead"));
}

void to_json(nlohmann::json& json, const ReaderState& state) {
  json = {{"total", state.total}, {"rows", state.rows},     {"block", state.block}, {"position", state.position},
          {"wraps", state.wraps}, {"blocks", state.blocks}, {"seed", state.seed}};
  if (!state.rule.empty()) json["rule"] = state.rule;
}

void from_json(const nlohmann::json& json, ReaderState& state) {
  const auto read = [&json](const char* name, auto& member) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    if (found == json.end() || !found->is_number_integer())
      throw UsageError(text("reader: a saved state must have the integer '", name, "', got ", json.dump()));
    found->get_to(member);
  };
  read("total", state.total);
  read("rows", state.rows);
  read("block", state.block);
  read("position", state.position);
  read("wraps", state.wraps);
  read("blocks", state.blocks);
  read("seed", state.seed);
  state.rule.clear();
  if (const auto rule = json.find("rule"); rule != json.end()) {
    if (!rule->is_string())
      throw UsageError(text("reader: a saved state must have text for 'rule', got ", rule->dump()));
    rule->get_to(state.rule);
  }
}

}  // namespace engram::data
