#include <array>
#include <numeric>
#include <set>

#include "apps/data/blocks/block_reader.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::block_reader_test {

using namespace engram::data;

namespace {

/// Whether the block is [rows, M] inputs from `position` of rows of `row_length`, with targets one later.
bool is_block_at(const Block& block, std::int64_t position, std::int64_t row_length) {
  for (int row = 0; row < block.rows; ++row)
    for (int i = 0; i < block.length; ++i) {
      const auto index = static_cast<std::size_t>(row * block.length + i);
      if (block.inputs[index] != row * row_length + position + i) return false;
      if (block.targets[index] != block.inputs[index] + 1 || block.scored[index] != 1) return false;
    }
  return block.scored_count == static_cast<std::int64_t>(block.rows) * block.length;
}

}  // namespace

TEST_CASE("reader: rows are contiguous and targets are one later", "[data]") {
  const TokenIds ids = count_up(23);
  StreamReader reader(TokenView(ids), 2, 3, 1);
  CHECK(reader.row_length() == 11);
  CHECK(reader.dropped() == 1);
  Block block;
  reader.next(block);
  CHECK(block.inputs == TokenIds{0, 1, 2, 11, 12, 13});
  CHECK(block.targets == TokenIds{1, 2, 3, 12, 13, 14});
  CHECK(block.scored == std::vector<std::uint8_t>(6, 1));
  CHECK(block.zero_caches);
  reader.next(block);
  CHECK(block.inputs == TokenIds{3, 4, 5, 14, 15, 16});
  CHECK_FALSE(block.zero_caches);
}

TEST_CASE("reader: wraps when the position reaches T - M, to one below M, with caches zeroed", "[data]") {
  // T = 20, M = 4: blocks at 0, 4, 8, 12 and no longer at 16 = T - M, although 16..19 would still hold inputs.
  const TokenIds ids = count_up(60);
  StreamReader reader(TokenView(ids), 3, 4, 5);
  Block block;
  for (const int position : {0, 4, 8, 12}) {
    reader.next(block);
    CHECK(is_block_at(block, position, 20));
    CHECK(block.zero_caches == (position == 0));
  }
  CHECK(reader.state().position == 16);
  CHECK(reader.state().wraps == 0);
  std::array<int, 4> starts{};
  std::int64_t expected = -1;
  for (int step = 0; step < 4000; ++step) {
    reader.next(block);
    const std::int64_t position = block.inputs[0];
    REQUIRE(is_block_at(block, position, 20));
    REQUIRE(block.zero_caches == (expected < 0));
    if (block.zero_caches) {
      REQUIRE(position < 4);
      ++starts[static_cast<std::size_t>(position)];
    } else {
      REQUIRE(position == expected);
    }
    expected = position + 4 >= 16 ? -1 : position + 4;
  }
  // 1000 wraps (a pass has four blocks from 0..3): 250 each, standard deviation 14.
  CHECK(reader.state().wraps == 1000);
  for (const int count : starts) CHECK(std::abs(count - 250) < 60);
}

TEST_CASE("reader: the random position has no block that runs past a short row", "[data]") {
  // T from M + 1, where only position 0 is possible, to 2M.
  for (int row_length = 9; row_length <= 16; ++row_length) {
    CAPTURE(row_length);
    const TokenIds ids = count_up(2 * row_length);
    StreamReader reader(TokenView(ids), 2, 8, 3);
    std::set<std::int64_t> positions;
    Block block;
    for (int step = 0; step < 400; ++step) {
      reader.next(block);
      REQUIRE(is_block_at(block, block.inputs[0], row_length));
      positions.insert(block.inputs[0]);
    }
    CHECK(positions.size() == static_cast<std::size_t>(row_length - 8));
    CHECK(*positions.rbegin() == row_length - 9);
  }
}

TEST_CASE("reader: seeds give different positions, the same seed the same", "[data]") {
  const TokenIds ids = count_up(1100);
  const auto positions = [&](std::uint64_t seed) {
    StreamReader reader(TokenView(ids), 1, 100, seed);
    TokenIds starts;
    Block block;
    while (starts.size() < 20) {
      reader.next(block);
      if (block.zero_caches) starts.push_back(block.inputs[0]);
    }
    return starts;
  };
  CHECK(positions(1) == positions(1));
  CHECK(positions(1) != positions(2));
  CHECK(positions(1) != positions(std::uint64_t{1} << 40));
}

TEST_CASE("reader: resumed at any block it goes on bit for bit", "[data]") {
  const TokenIds ids = count_up(101);
  for (int saved_at = 0; saved_at < 60; ++saved_at) {
    CAPTURE(saved_at);
    StreamReader whole(TokenView(ids), 2, 7, 0xfedcba9876543210u);
    Block expected, got;
    for (int step = 0; step < saved_at; ++step) whole.next(expected);
    const std::string saved = nlohmann::json(whole.state()).dump();

    StreamReader resumed(TokenView(ids), 2, 7, 99);
    const ReaderState state = nlohmann::json::parse(saved).get<ReaderState>();
    CHECK(state == whole.state());
    REQUIRE(resumed.accepts(state));
    resumed.restore(state);
    for (int step = 0; step < 40; ++step) {
      whole.next(expected);
      resumed.next(got);
      REQUIRE(got.inputs == expected.inputs);
      REQUIRE(got.targets == expected.targets);
      REQUIRE(got.zero_caches == expected.zero_caches);
    }
    CHECK(resumed.state() == whole.state());
  }
}

TEST_CASE("reader: a state of other data, batch or block is refused", "[data]") {
  const TokenIds ids = count_up(100);
  StreamReader reader(TokenView(ids), 2, 5, 1);
  const ReaderState good = reader.state();
  for (int change = 0; change < 5; ++change) {
    ReaderState state = good;
    if (change == 0) state.total = 101;
    if (change == 1) state.rows = 4;
    if (change == 2) state.block = 6;
    if (change == 3) state.position = -1;
    if (change == 4) state.position = 51;
    CHECK_FALSE(reader.accepts(state));
    CHECK_THAT(
        message_of<UsageError>([&] { reader.restore(state); }),
        ContainsSubstring("the same data, batch and block length (100 tokens, batch 2, block 5, position 0), got ") &&
            ContainsSubstring("start the reader afresh"));
  }
  nlohmann::json json = good;
  for (const char* name : {"total", "rows", "block", "position", "wraps", "blocks", "seed"}) {
    nlohmann::json without = json, wrong = json;
    without.erase(name);
    wrong[name] = "1";
    for (const nlohmann::json& bad : {without, wrong})
      CHECK_THAT(message_of<UsageError>([&] { bad.get<ReaderState>(); }),
                 ContainsSubstring("must have the integer '" + std::string(name) + "'"));
  }
  CHECK_THROWS_AS(nlohmann::json::array().get<ReaderState>(), UsageError);
}

TEST_CASE("reader: too few tokens state the totals and the largest workable batch", "[data]") {
  const TokenIds ids = count_up(99);
  const auto error_of = [&](int rows, int block) {
    return message_of<UsageError>([&] { StreamReader reader(TokenView(ids), rows, block, 1); });
  };
  CHECK(error_of(9, 10).empty());
  const std::string message = error_of(10, 10);
  CHECK_THAT(message, ContainsSubstring("batch * (block + 1) = 10 * 11 = 110 tokens are needed, got 99"));
  CHECK_THAT(message, ContainsSubstring(
                          "the largest workable batch is 9 (training.batch), the longest block for a batch of 10 is 8 "
                          "(training.block); or take a longer text"));
  CHECK(error_of(1, 98).empty());
  CHECK_THAT(error_of(1, 99),
             ContainsSubstring("1 * 100 = 100 tokens are needed, got 99") &&
                 ContainsSubstring("no batch works with this block length, the longest block for a batch of 1 is 98"));
  CHECK_THAT(error_of(2147483647, 2147483647), ContainsSubstring("2147483647 * 2147483648 = 4611686016279904256"));
  CHECK_THAT(error_of(0, 10), ContainsSubstring("the number of rows (batch) must be at least 1, got 0"));
  CHECK_THAT(error_of(1, 0), ContainsSubstring("the block length must be at least 1, got 0"));
  CHECK_THAT(error_of(-3, 10), ContainsSubstring("got -3"));

  // The stated batch works and one more does not, for every total.
  for (std::int32_t total = 12; total < 60; ++total) {
    const TokenIds some = count_up(total);
    const int most = static_cast<int>(largest_rows(total, 5));
    CHECK_NOTHROW(StreamReader(TokenView(some), most, 5, 1));
    CHECK_THROWS_AS(StreamReader(TokenView(some), most + 1, 5, 1), UsageError);
  }
}

TEST_CASE("reader: tokens of every width read alike", "[data]") {
  const TokenIds ids = count_up(200);
  const std::vector<std::uint8_t> bytes(ids.begin(), ids.end());
  const std::vector<std::uint16_t> words(ids.begin(), ids.end());
  StreamReader wide(TokenView(ids), 3, 6, 2), narrow(TokenView(bytes.data(), 1, 200), 3, 6, 2),
      middle(TokenView(words.data(), 2, 200), 3, 6, 2);
  Block a, b, c;
  for (int step = 0; step < 50; ++step) {
    wide.next(a), narrow.next(b), middle.next(c);
    REQUIRE(a.inputs == b.inputs);
    REQUIRE(a.inputs == c.inputs);
    REQUIRE(a.targets == c.targets);
  }
}

}  // namespace engram::harness::block_reader_test
