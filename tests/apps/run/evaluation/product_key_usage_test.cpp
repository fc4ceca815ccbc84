/// Usage, divergence and their like: [product-key 4.1] and test 12.

#include "apps/run/evaluation/product_key_usage.hpp"

#include <cmath>
#include <random>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"

namespace engram::product_key_usage_test {
namespace {

using Ids = std::vector<std::int64_t>;
using Weights = std::vector<double>;

TEST_CASE("memory usage: access to all slots alike, to one, and in between (test 12)") {
  constexpr std::int64_t kSlots = 64;
  ProductKeyUsage alike(kSlots, 1, 1), one(kSlots, 1, 1);
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    alike.add(Ids{slot}, Weights{1});
    one.add(Ids{5}, Weights{1});
  }
  CHECK(alike.metrics().usage == 1);
  CHECK(std::abs(alike.metrics().kl) < 1e-6);
  CHECK(std::abs(alike.metrics().kl_by_count) < 1e-6);
  CHECK(std::abs(alike.metrics().gini) < 1e-12);
  CHECK(alike.metrics().half_mass == 32);
  CHECK(alike.metrics().most_mass == 58);
  CHECK(alike.metrics().nearly_all_mass == 64);
  CHECK(alike.metrics().top_usage == 1);
  CHECK(one.metrics().usage == 1.0 / kSlots);
  CHECK(one.metrics().kl == Approx(std::log(64.0)).epsilon(1e-12));
  CHECK(one.metrics().gini == Approx(1 - 1 / 64.0).epsilon(1e-12));
  CHECK(one.metrics().nearly_all_mass == 1);

  ProductKeyUsage between(4, 1, 3);
  between.add(Ids{0, 1, 2}, Weights{0.5, 0.25, 0.25});
  const ProductKeyUsage::Metrics found = between.metrics();
  CHECK(found.usage == 0.75);
  CHECK(found.usage_by_weight == 0.75);
  CHECK(found.kl == Approx(0.3465735903).epsilon(1e-9));
  CHECK(found.kl_by_count == Approx(std::log(4.0 / 3)).epsilon(1e-12));
  CHECK(found.top_usage == 0.25);
  CHECK(found.gini == Approx(1.25 - 2 * (0 + 0.25 + 0.5 + 1) / 4).epsilon(1e-12));
  CHECK(found.half_mass == 1);
  CHECK(found.score_entropy == Approx(1.5 * std::log(2.0)).epsilon(1e-12));
  CHECK(found.top_weight == 0.5);
}

TEST_CASE("memory usage: a read whose weight is 0 counts as a read") {
  ProductKeyUsage usage(4, 1, 2);
  usage.add(Ids{0, 3}, Weights{1, 0});
  CHECK(usage.metrics().usage == 0.5);
  CHECK(usage.metrics().usage_by_weight == 0.25);
}

TEST_CASE("memory usage: heads that read the same slots") {
  ProductKeyUsage usage(10, 2, 2);
  usage.add(Ids{0, 1, 1, 2}, Weights{0.5, 0.5, 0.5, 0.5});  // slot 1 by both at one position
  usage.add(Ids{2, 3, 4, 5}, Weights{0.5, 0.5, 0.5, 0.5});  // slot 2 by the other head now
  CHECK(usage.metrics().head_overlap == Approx(2.0 / 6));
  CHECK(usage.metrics().repeated_reads == Approx(2.0 / 8));
  CHECK(usage.metrics().total_weight == Approx(4));
}

TEST_CASE("memory usage: parts of a text joined are the text (test 12)") {
  std::mt19937 random(7);
  ProductKeyUsage whole(50, 2, 3), first(50, 2, 3), second(50, 2, 3);
  for (int position = 0; position < 40; ++position) {
    Ids ids;
    for (int head = 0; head < 2; ++head) {
      const auto slot = static_cast<std::int64_t>(random() % 40);
      ids.insert(ids.end(), {slot, slot + 3, slot + 7});
    }
    const Weights weights{0.5, 0.25, 0.25, 0.75, 0.25, 0};  // exact sums
    whole.add(ids, weights);
    (position < 17 ? first : second).add(ids, weights);
  }
  first.merge(second);
  const ProductKeyUsage::Metrics a = whole.metrics(), b = first.metrics();
  CHECK(a.usage == b.usage);
  CHECK(a.kl == b.kl);
  CHECK(a.kl_by_count == b.kl_by_count);
  CHECK(a.gini == b.gini);
  CHECK(a.top_usage == b.top_usage);
  CHECK(a.head_overlap == b.head_overlap);
  CHECK(a.repeated_reads == b.repeated_reads);
  CHECK(a.score_entropy == Approx(b.score_entropy).epsilon(1e-12));
  CHECK(a.positions == b.positions);
  CHECK(whole.falling_shares() == first.falling_shares());
}

TEST_CASE("memory usage: what is refused") {
  CHECK_THROWS_WITH(ProductKeyUsage(4, 65, 1), ContainsSubstring("heads must be from 1 to 64, got 65"));
  ProductKeyUsage usage(4, 1, 2);
  CHECK_THROWS_WITH(usage.metrics(), ContainsSubstring("need reads"));
  CHECK_THROWS_WITH(usage.add(Ids{0, 4}, Weights{1, 0}), ContainsSubstring("[0, 4), got 4"));
  CHECK_THROWS_WITH(usage.add(Ids{0}, Weights{1}), ContainsSubstring("[positions, 1, 2], got 1 and 1"));
  CHECK_THROWS_AS(usage.merge(ProductKeyUsage(5, 1, 2)), Error);
}

}  // namespace
}  // namespace engram::product_key_usage_test
