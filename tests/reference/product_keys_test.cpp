/// Product keys: the grid of the best sub-keys and the priority queue give what sorting all slots gives ([product-key
/// 10], tests 2 to 4).

#include "tests/reference/product_keys.hpp"

#include <random>

#include "core/rules/score_order.hpp"
#include "tests/harness/catch.hpp"

namespace engram::reference::product_keys_test {
namespace {

template <class T>
void check_all_ways(const HalfScores<T>& sets, std::int64_t k) {
  const SelectedSlots<T> wanted = sort_all_slots(sets, k);
  for (const SelectedSlots<T>& got : {sort_grid(sets, k), take_from_queue(sets, k)}) {
    CHECK(got.ids == wanted.ids);
    CHECK(got.scores == wanted.scores);
  }
}

TEST_CASE("product keys: three ways to one list", "[reference]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto below = [&random](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  for (int trial = 0; trial < 600; ++trial) {
    const bool ties = trial % 2 == 1;
    const std::int64_t sets = 1 + trial % 3, n = 1 + below(sets == 3 ? 9 : 40);
    const std::int64_t slots = sets == 1 ? n : sets == 2 ? n * n : n * n * n;
    const std::int64_t k = 1 + below(std::min<std::int64_t>(slots, trial % 5 == 0 ? slots : n));  // also above n
    CAPTURE(trial, sets, n, k);
    HalfScores<float> scores(static_cast<std::size_t>(sets));
    for (auto& set : scores)
      for (std::int64_t i = 0; i < n; ++i)
        set.push_back(ties ? static_cast<float>(below(3)) : static_cast<float>(normal(random)));
    check_all_ways(scores, k);
  }
}

TEST_CASE("product keys: sums that rounding makes equal are in the order of ranks", "[reference]") {
  const HalfScores<float> scores{{0.25f, 0.5f}, {16777216.0f, 0.0f}};
  check_all_ways(scores, 1);
  check_all_ways(scores, 4);
  CHECK(sort_all_slots(scores, 4).ids == std::vector<std::int64_t>{2, 0, 3, 1});
  // In double they are not equal, and the order is the same.
  CHECK(sort_all_slots(HalfScores<double>{{0.25, 0.5}, {16777216, 0}}, 4).ids == std::vector<std::int64_t>{2, 0, 3, 1});
}

TEST_CASE("product keys: the number of tuples of ranks that are looked at", "[reference]") {
  const std::int64_t k = GENERATE(8, 16, 32, 64);
  CHECK(count_rank_tuples(2, k, k) == (k == 8 ? 20 : k == 16 ? 50 : k == 32 ? 119 : 280));
  CHECK(count_rank_tuples(1, k, k) == k);
  for (int sets = 2; sets <= 3; ++sets)
    for (const std::int64_t length : {k, k / 2, std::int64_t{1}}) {
      std::int64_t wanted = 0, found = 0;
      for (std::int64_t p = 0; p < length; ++p)
        for (std::int64_t q = 0; q < length; ++q)
          for (std::int64_t r = 0; r < (sets == 3 ? length : 1); ++r) wanted += (p + 1) * (q + 1) * (r + 1) <= k;
      for (std::int64_t p = 0; p < length; ++p)
        for_each_rank_after(sets, length, k, p, [&](std::int64_t q, std::int64_t r) {
          ++found;
          CHECK((p + 1) * (q + 1) * (r + 1) <= k);
        });
      CHECK(found == wanted);
      CHECK(count_rank_tuples(sets, length, k) == wanted);
    }
}

TEST_CASE("product keys: whole numbers in the order of scores", "[reference]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending{-kInf, -3e38f, -1.0f, -1e-45f, 0.0f, 1e-45f, 1.0f, 1.0000001f, 3e38f, kInf};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    CHECK(score_image(ascending[i - 1]) < score_image(ascending[i]));
    CHECK(score_image(static_cast<double>(ascending[i - 1])) < score_image(static_cast<double>(ascending[i])));
  }
  CHECK(score_image(-0.0f) == score_image(0.0f));
  CHECK(score_image(-0.0) == score_image(0.0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(score_image(nan) == score_image(-nan));
  CHECK(score_image(nan) < score_image(-kInf));
  CHECK(score_image(static_cast<double>(nan)) < score_image(-static_cast<double>(kInf)));
}

}  // namespace
}  // namespace engram::reference::product_keys_test
