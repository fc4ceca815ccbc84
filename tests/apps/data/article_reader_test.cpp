/// Streams of articles: what blocks hold, where articles begin in them, that an epoch has every token once, and that a
/// reader goes on where it stopped.

#include <algorithm>
#include <set>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/data/blocks/segments.hpp"
#include "apps/data/blocks/shuffled_windows.hpp"
#include "apps/data/blocks/window_evaluation.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::article_reader_test {

using namespace engram::data;

namespace {

using Preceding = std::vector<std::int32_t>;
using Places = std::vector<std::int64_t>;
using Flags = std::vector<std::uint8_t>;

/// Articles of the given lengths; token i is 100 + i, and what is before an article is 7.
struct Articles {
  explicit Articles(const std::vector<std::int64_t>& lengths) {
    std::int64_t total = 0;
    for (const std::int64_t length : lengths) {
      starts.push_back(total);
      total += length;
    }
    for (std::int64_t i = 0; i < total; ++i) tokens.push_back(static_cast<std::int32_t>(100 + i));
  }
  ArticleSplit split() const { return {TokenView(tokens), starts, 7}; }
  TokenIds tokens;
  std::vector<std::int64_t> starts;
};

const std::vector<std::int64_t> kFour{3, 1, 4, 2};

void check_same(const Block& a, const Block& b) {
  CHECK(a.length == b.length);
  CHECK(a.inputs == b.inputs);
  CHECK(a.targets == b.targets);
  CHECK(a.scored == b.scored);
  CHECK(a.scored_count == b.scored_count);
  CHECK(a.preceding == b.preceding);
  CHECK(a.places == b.places);
  CHECK(a.zero_caches == b.zero_caches);
}

/// All of a pass by the plain definition: streams one position after the other.
std::vector<Block> plain_pass(const Articles& articles, const std::vector<std::int64_t>& order, int rows, int block) {
  const ArticleSplit split = articles.split();
  std::vector<std::vector<std::int64_t>> places(static_cast<std::size_t>(rows)), begins = places;
  std::size_t next = 0;
  for (;;) {
    // The stream that is shortest takes the next article; of several the first.
    auto shortest = std::ranges::min_element(places, {}, [](const auto& stream) { return stream.size(); });
    if (next == order.size()) break;
    const std::int64_t article = order[next++], begin = split.starts[static_cast<std::size_t>(article)];
    for (std::int64_t i = 0; i < split.length(article); ++i) {
      shortest->push_back(begin + i);
      begins[static_cast<std::size_t>(shortest - places.begin())].push_back(begin);
    }
  }
  std::size_t longest = 0;
  for (const auto& stream : places) longest = std::max(longest, stream.size());
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < longest; at += static_cast<std::size_t>(block)) {
    Block made;
    made.rows = rows;
    made.length = block;
    made.zero_caches = at == 0;
    for (std::size_t row = 0; row < places.size(); ++row)
      for (std::size_t i = at; i < at + static_cast<std::size_t>(block); ++i) {
        const bool has = i < places[row].size();
        const std::int64_t place = has ? places[row][i] : -1, begin = has ? begins[row][i] : 0;
        made.inputs.push_back(!has ? 0 : place == begin ? 7 : split.tokens[place - 1]);
        made.targets.push_back(has ? split.tokens[place] : 0);
        made.scored.push_back(has ? 1 : 0);
        made.preceding.push_back(has ? static_cast<std::int32_t>(place - begin) : 0);
        made.places.push_back(place);
        made.scored_count += has ? 1 : 0;
      }
    blocks.push_back(std::move(made));
  }
  return blocks;
}

}  // namespace

TEST_CASE("article evaluation: two streams take articles as they need them", "[data][articles]") {
  const Articles articles(kFour);
  ArticleEvaluation plan(articles.split(), 3, 2);
  CHECK(plan.block_count() == 2);
  CHECK(plan.scored_count() == 10);
  CHECK(plan.longest_block() == 3);
  for (int pass = 0; pass < 2; ++pass) {
    Block block;
    REQUIRE(plan.next(block));
    CHECK(block.rows == 2);
    CHECK(block.length == 3);
    CHECK(block.inputs == TokenIds{7, 100, 101, 7, 7, 104});
    CHECK(block.targets == TokenIds{100, 101, 102, 103, 104, 105});
    CHECK(block.preceding == Preceding{0, 1, 2, 0, 0, 1});
    CHECK(block.places == Places{0, 1, 2, 3, 4, 5});
    CHECK(block.scored_count == 6);
    CHECK(block.zero_caches);
    REQUIRE(plan.next(block));
    CHECK(block.length == 2);
    CHECK(block.inputs == TokenIds{7, 108, 105, 106});
    CHECK(block.targets == TokenIds{108, 109, 106, 107});
    CHECK(block.preceding == Preceding{0, 1, 2, 3});
    CHECK(block.places == Places{8, 9, 6, 7});
    CHECK_FALSE(block.zero_caches);
    CHECK_FALSE(plan.next(block));
    plan.begin();
  }
}

TEST_CASE("article evaluation: an article may begin in the last column and go on over blocks", "[data][articles]") {
  const Articles articles({3, 6, 1});
  ArticleEvaluation plan(articles.split(), 4);
  Block block;
  REQUIRE(plan.next(block));
  CHECK(block.preceding == Preceding{0, 1, 2, 0});
  CHECK(block.inputs == TokenIds{7, 100, 101, 7});
  REQUIRE(plan.next(block));
  CHECK(block.preceding == Preceding{1, 2, 3, 4});
  CHECK(block.inputs == TokenIds{103, 104, 105, 106});
  REQUIRE(plan.next(block));
  CHECK(block.preceding == Preceding{5, 0});
  CHECK(block.inputs == TokenIds{107, 7});
  CHECK(block.targets == TokenIds{108, 109});
  CHECK_FALSE(plan.next(block));
}

TEST_CASE("article evaluation: streams beyond the articles stay empty", "[data][articles]") {
  const Articles articles({2, 1});
  ArticleEvaluation plan(articles.split(), 5, 3);
  Block block;
  REQUIRE(plan.next(block));
  CHECK(block.length == 2);
  CHECK(block.inputs == TokenIds{7, 100, 7, 0, 0, 0});
  CHECK(block.targets == TokenIds{100, 101, 102, 0, 0, 0});
  CHECK(block.scored == Flags{1, 1, 1, 0, 0, 0});
  CHECK(block.preceding == Preceding{0, 1, 0, 0, 0, 0});
  CHECK(block.places == Places{0, 1, 2, -1, -1, -1});
  CHECK(block.scored_count == 3);
  CHECK_FALSE(plan.next(block));
  CHECK(ArticleReader(articles.split(), 3, 5, 1).idle_streams() == 1);
  CHECK(ArticleReader(articles.split(), 2, 5, 1).idle_streams() == 0);
}

TEST_CASE("article evaluation: every target once, whatever the streams and blocks", "[data][articles]") {
  const Articles articles({5, 1, 1, 9, 2, 30, 3, 1, 4, 4});
  for (const int rows : {1, 2, 3, 7, 10, 12})
    for (const int length : {1, 2, 7, 20, 100}) {
      CAPTURE(rows, length);
      ArticleEvaluation plan(articles.split(), length, rows);
      std::multiset<std::int64_t> places;
      std::int64_t blocks = 0;
      for (Block block; plan.next(block); ++blocks) {
        CHECK(block.length <= length);
        for (std::size_t i = 0; i < block.targets.size(); ++i) {
          if (block.scored[i] == 0) continue;
          places.insert(block.places[i]);
          CHECK(block.place_of(static_cast<std::int64_t>(i)) == block.places[i]);
          CHECK(block.targets[i] == 100 + block.places[i]);
        }
      }
      CHECK(blocks == plan.block_count());
      REQUIRE(std::ssize(places) == plan.scored_count());
      for (std::int64_t i = 0; i < 60; ++i) REQUIRE(places.count(i) == 1);
    }
}

TEST_CASE("article reader: epochs in orders of their own, by the plain definition", "[data][articles]") {
  const Articles articles({5, 1, 1, 9, 2, 30, 3, 1, 4, 4, 17, 2});
  constexpr std::uint64_t kSeed = 11;
  for (const int rows : {1, 3, 12, 15})
    for (const int length : {1, 4, 20}) {
      CAPTURE(rows, length);
      ArticleReader reader(articles.split(), rows, length, kSeed);
      std::set<std::vector<std::int64_t>> orders;
      Block block;
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < 12; ++i) order.push_back(shuffled(i, 12, kSeed, epoch));
        orders.insert(order);
        const std::vector<Block> expected = plain_pass(articles, order, rows, length);
        CHECK(reader.state().wraps == (epoch == 0 ? 0 : epoch - 1));
        std::int64_t scored = 0;
        for (const Block& one : expected) {
          reader.next(block);
          check_same(block, one);
          scored += block.scored_count;
        }
        CHECK(scored == 79);
        CHECK(reader.epoch_blocks() == std::ssize(expected));
        CHECK(reader.state().wraps == epoch);
      }
      CHECK(orders.size() == 3);
    }
}

TEST_CASE("article reader: goes on where it stopped", "[data][articles]") {
  const Articles articles({5, 1, 1, 9, 2, 30, 3, 1, 4, 4, 17, 2});
  for (const int rows : {1, 2, 5, 14}) {
    ArticleReader reader(articles.split(), rows, 3, 4);
    Block block, again;
    for (int i = 0; i < 90; ++i) {
      CAPTURE(rows, i);
      const nlohmann::json json = reader.state();
      ArticleReader resumed(articles.split(), rows, 3, 99);
      const ReaderState state = json.get<ReaderState>();
      REQUIRE(resumed.accepts(state));
      resumed.restore(state);
      CHECK(resumed.state() == reader.state());
      reader.next(block);
      for (int ahead = 0; ahead < 2; ++ahead) {
        resumed.next(again);
        if (ahead == 0) check_same(again, block);
      }
    }
    CHECK(reader.state().wraps >= 1);
  }
}

TEST_CASE("article reader: refuses states of other articles and readers", "[data][articles]") {
  const Articles articles(kFour), others({1, 3, 4, 2});
  ArticleReader reader(articles.split(), 2, 3, 1);
  const ReaderState good = reader.state();
  CHECK(reader.accepts(good));
  CHECK_FALSE(reader.accepts(ArticleReader(others.split(), 2, 3, 1).state()));
  CHECK_FALSE(reader.accepts(ArticleReader(articles.split(), 1, 3, 1).state()));
  CHECK_FALSE(reader.accepts(ArticleReader(articles.split(), 2, 4, 1).state()));
  CHECK_FALSE(reader.accepts(SegmentReader(TokenView(articles.tokens), 2, {.segment = 3}, 1).state()));
  for (const std::int64_t position : {-1, 5, 100}) {
    ReaderState wrong = good;
    wrong.position = position;
    CHECK_FALSE(reader.accepts(wrong));
  }
  CHECK_THAT(message_of<UsageError>([&] { reader.restore(ArticleReader(others.split(), 2, 3, 1).state()); }),
             ContainsSubstring("articles, 4 of fnv1a64:") && ContainsSubstring("start the reader afresh"));
}

TEST_CASE("article reader: refuses what is no split in articles", "[data][articles]") {
  const Articles articles(kFour);
  const auto error = [&](ArticleSplit split, int rows, int block) {
    return message_of<UsageError>([&] { ArticleReader(split, rows, block, 1); });
  };
  CHECK_THAT(error(articles.split(), 0, 3), ContainsSubstring("at least 1, got 0"));
  CHECK_THAT(error(articles.split(), 1, -2), ContainsSubstring("at least 1, got -2"));
  CHECK_THAT(error({TokenView(articles.tokens), {}, 7}, 1, 3), ContainsSubstring("10 tokens without articles"));
  const std::vector<std::int64_t> late{1, 3}, equal{0, 3, 3}, beyond{0, 10};
  CHECK_THAT(error({TokenView(articles.tokens), late, 7}, 1, 3), ContainsSubstring("a first article at token 1"));
  CHECK_THAT(error({TokenView(articles.tokens), equal, 7}, 1, 3),
             ContainsSubstring("article 2 at token 3 after one at 3"));
  CHECK_THAT(error({TokenView(articles.tokens), beyond, 7}, 1, 3), ContainsSubstring("an article at token 10 of 10"));
}

TEST_CASE("other readers say nothing about articles, whatever the block held before", "[data][articles]") {
  const Articles articles(kFour);
  const TokenView tokens(articles.tokens);
  Block block;
  const auto check = [&](const auto& read) {
    ArticleReader(articles.split(), 2, 3, 1).next(block);
    CHECK(block.preceding.size() == 6);
    read();
    CHECK(block.preceding.empty());
    CHECK(block.places.empty());
    CHECK(block.place_of(0) == block.first + block.context + 1);
  };
  check([&] { StreamReader(tokens, 2, 2, 1).next(block); });
  check([&] { SegmentReader(tokens, 2, {.segment = 2}, 1).next(block); });
  check([&] { ShuffledWindows(tokens, 2, 2, 1).next(block); });
  check([&] { REQUIRE(FullEvaluation(tokens, 2, 2).next(block)); });
  check([&] { REQUIRE(ExactEvaluation(tokens, 2).next(block)); });
  check([&] { REQUIRE(SegmentEvaluation(tokens, 2).next(block)); });
  check([&] { REQUIRE(SlidingEvaluation(tokens, 4, 2).next(block)); });
  check([&] { REQUIRE(WindowEvaluation(tokens, 3).next(block)); });
}

TEST_CASE("short validation goes on through articles", "[data][articles]") {
  const Articles articles(kFour);
  ShortValidation plan(std::make_unique<ArticleReader>(articles.split(), 2, 2, 1), 2);
  ArticleReader reader(articles.split(), 2, 2, 1);
  Block block, expected;
  for (int pass = 0; pass < 3; ++pass, plan.begin())
    for (int i = 0; i < 2; ++i) {
      REQUIRE(plan.next(block));
      reader.next(expected);
      check_same(block, expected);
    }
}

}  // namespace engram::harness::article_reader_test
