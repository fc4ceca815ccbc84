/// Windows for models that remember nothing: drawn in a random order for training, side by side for evaluation
/// ([product-key 6]).

#include <algorithm>
#include <set>

#include "apps/data/blocks/segments.hpp"
#include "apps/data/blocks/shuffled_windows.hpp"
#include "apps/data/blocks/window_evaluation.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::windows_test {

using namespace engram::data;

TEST_CASE("shuffled windows: every order is a permutation, another one for every epoch and seed",
          "[data][product-key]") {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 16, 17, 1000}) {
    CAPTURE(count);
    std::set<std::vector<std::int64_t>> orders;
    for (const std::uint64_t seed : {1, 2})
      for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < count; ++i) order.push_back(shuffled(i, count, seed, epoch));
        orders.insert(order);
        std::ranges::sort(order);
        for (std::int64_t i = 0; i < count; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
      }
    if (count >= 16) CHECK(orders.size() == 10);
  }
  // More than 2^32 windows.
  constexpr std::int64_t kMany = std::int64_t{5} << 40;
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t place = shuffled(kMany - 1 - i, kMany, 3, 0);
    CHECK((place >= 0 && place < kMany));
    places.insert(place);
  }
  CHECK(places.size() == 1000);
}

TEST_CASE("shuffled windows: neighbours in an order are no neighbours in the text", "[data][product-key]") {
  // Of 4000 windows in random order the mean place is 2000, and a window follows its own neighbour once in an epoch.
  constexpr std::int64_t kCount = 4000;
  std::int64_t following = 0;
  double early = 0, products = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t here = shuffled(i, kCount, 7, 0), next = shuffled((i + 1) % kCount, kCount, 7, 0);
    following += next == here + 1 ? 1 : 0;
    if (i < kCount / 2) early += static_cast<double>(here);
    products += (static_cast<double>(here) / kCount - 0.5) * (static_cast<double>(next) / kCount - 0.5) * 12;
  }
  CHECK(following < 8);
  CHECK(early / (kCount / 2.0) == Approx(kCount / 2.0).epsilon(0.05));
  CHECK(std::abs(products / kCount) < 0.06);  // four deviations of uncorrelated numbers
}

TEST_CASE("shuffled windows: an epoch has every window once, and blocks go on into the next epoch",
          "[data][product-key]") {
  const TokenIds ids = count_up(48);  // 47 inputs: 9 windows of 5, and 2 tokens more
  ShuffledWindows reader(TokenView(ids), 4, 5, 11);
  CHECK(reader.windows() == 9);
  CHECK(reader.dropped() == 2);
  std::vector<std::int32_t> starts;
  Block block;
  for (int step = 0; step < 9; ++step) {
    CHECK(reader.state().wraps == std::uint64_t(step * 4 / 9));
    reader.next(block);
    CHECK(block.zero_caches);
    CHECK((block.rows == 4 && block.length == 5 && block.context == 0 && block.fed_again == 0));
    CHECK(block.scored_count == 20);
    for (std::size_t row = 0; row < 4; ++row) {
      starts.push_back(block.inputs[row * 5]);
      for (std::size_t i = 0; i < 5; ++i) {
        CHECK(block.inputs[row * 5 + i] == starts.back() + std::int32_t(i));
        CHECK(block.targets[row * 5 + i] == starts.back() + std::int32_t(i) + 1);
      }
    }
  }
  CHECK(reader.state().wraps == 4);
  CHECK(reader.state().position == 0);
  std::set<TokenIds> epochs;
  for (std::size_t epoch = 0; epoch < 4; ++epoch) {
    TokenIds own(starts.begin() + std::ptrdiff_t(epoch * 9), starts.begin() + std::ptrdiff_t(epoch * 9 + 9));
    epochs.insert(own);
    std::ranges::sort(own);
    CHECK(own == TokenIds{0, 5, 10, 15, 20, 25, 30, 35, 40});
  }
  CHECK(epochs.size() == 4);
}

TEST_CASE("shuffled windows: resumed at any block the reader goes on bit for bit", "[data][product-key]") {
  const TokenIds ids = count_up(200);
  ShuffledWindows reader(TokenView(ids), 3, 7, 77);
  for (int step = 0; step < 40; ++step) {
    const auto saved = nlohmann::json::parse(nlohmann::json(reader.state()).dump()).get<ReaderState>();
    ShuffledWindows resumed(TokenView(ids), 3, 7, 1);
    REQUIRE(resumed.accepts(saved));
    resumed.restore(saved);
    Block block, again;
    for (int ahead = 0; ahead < 3; ++ahead) {
      reader.next(block);
      resumed.next(again);
      REQUIRE((block.inputs == again.inputs && block.targets == again.targets));
    }
    REQUIRE(resumed.state() == reader.state());
  }
  SegmentReader segments(TokenView(ids), 3, {.segment = 7}, 1);
  StreamReader blocks(TokenView(ids), 3, 7, 1);
  for (BlockReader* const other : std::initializer_list<BlockReader*>{&segments, &blocks}) {
    CHECK_FALSE(other->accepts(reader.state()));
    CHECK_FALSE(reader.accepts(other->state()));
    CHECK_THAT(message_of<UsageError>([&] { other->restore(reader.state()); }), ContainsSubstring("shuffled windows"));
    CHECK_THROWS_AS(reader.restore(other->state()), UsageError);
  }
  CHECK_FALSE(ShuffledWindows(TokenView(ids), 4, 7, 1).accepts(reader.state()));
  CHECK_FALSE(ShuffledWindows(TokenView(ids), 3, 6, 1).accepts(reader.state()));
  ReaderState outside = reader.state();
  outside.position = 28;
  CHECK_FALSE(reader.accepts(outside));
}

TEST_CASE("window evaluation: all but the first token of every window is scored, after its window alone",
          "[data][product-key]") {
  for (const std::int32_t total : {2, 3, 5, 6, 7, 10, 11, 12, 23})
    for (const int rows : {1, 2, 3}) {
      CAPTURE(total, rows);
      const TokenIds ids = count_up(total);
      WindowEvaluation plan(TokenView(ids), 5, rows);
      std::vector<int> times(static_cast<std::size_t>(total));
      std::int64_t blocks = 0, scored = 0, longest = 0;
      Block block;
      for (int pass = 0; pass < 2; ++pass) {
        plan.begin();
        while (plan.next(block)) {
          ++blocks;
          scored += block.scored_count;
          longest = std::max<std::int64_t>(longest, block.length);
          REQUIRE(block.zero_caches);
          REQUIRE(block.rows <= rows);
          for (std::int64_t row = 0; row < block.rows; ++row)
            for (std::int64_t i = 0; i < block.length; ++i) {
              const auto at = static_cast<std::size_t>(row * block.length + i);
              REQUIRE(block.inputs[at] == block.first + row * block.stride + i);
              REQUIRE(block.inputs[at] % 5 == i);  // a window begins at its first token
              REQUIRE(block.targets[at] == block.inputs[at] + 1);
              ++times[static_cast<std::size_t>(block.targets[at])];
            }
        }
      }
      CHECK(blocks == 2 * plan.block_count());
      CHECK(scored == 2 * plan.scored_count());
      CHECK(longest == plan.longest_block());
      for (std::int32_t token = 0; token < total; ++token)
        CHECK(times[static_cast<std::size_t>(token)] == (token % 5 == 0 ? 0 : 2));
    }
}

TEST_CASE("windows: errors", "[data][product-key]") {
  const TokenIds ids = count_up(8);
  const auto error = [&](int rows, int block) {
    return message_of<UsageError>([&] { ShuffledWindows(TokenView(ids), rows, block, 1); });
  };
  CHECK_THAT(error(0, 4), ContainsSubstring("at least 1, got 0"));
  CHECK_THAT(error(1, 0), ContainsSubstring("at least 1 token, got 0"));
  CHECK_THAT(error(1, 8), ContainsSubstring("need 9 tokens, got 8"));
  CHECK(error(5, 7).empty());
  CHECK_THAT(message_of<UsageError>([&] { WindowEvaluation(TokenView(ids), 1); }),
             ContainsSubstring("at least 2 tokens"));
  CHECK_THAT(message_of<UsageError>([&] { WindowEvaluation(TokenView(ids), 4, 0); }), ContainsSubstring("got 0"));
  CHECK_THAT(message_of<UsageError>([&] { WindowEvaluation(TokenView(ids.data(), 4, 1), 4); }),
             ContainsSubstring("got 1"));
}

}  // namespace engram::harness::windows_test
