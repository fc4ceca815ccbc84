/// Clusters of a vocabulary and the partition of a block into them: [all-attention 4, 11].

#include <numeric>

#include "core/error.hpp"
#include "nn/layers/token_partition.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::vocabulary_clusters_test {
namespace {

using Cutoffs = std::vector<std::int64_t>;

std::string refusal(const Cutoffs& cutoffs, std::int64_t vocabulary, std::int64_t width) {
  return message_of<UsageError>([&] { VocabularyClusters(cutoffs, vocabulary, width); });
}

TEST_CASE("clusters of the released word model, and of the paper") {
  const VocabularyClusters clusters(Cutoffs{20'000, 40'000, 200'000}, 267'735, 512);
  REQUIRE(clusters.count() == 4);
  const std::int64_t sizes[] = {20'000, 20'000, 160'000, 67'735}, widths[] = {512, 128, 32, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(clusters[i].size == sizes[i]);
    CHECK(clusters[i].width == widths[i]);
  }
  CHECK(clusters.vocabulary() == 267'735);
  CHECK(clusters.head_size() == 20'003);
  CHECK(clusters.head_slot(1) == 20'002);  // the first tail has the last slot
  CHECK(clusters.head_slot(3) == 20'000);
  CHECK(clusters.of(0) == 0);
  CHECK(clusters.of(19'999) == 0);
  CHECK(clusters.of(20'000) == 1);
  CHECK(clusters.of(199'999) == 2);
  CHECK(clusters.of(200'000) == 3);
  CHECK(clusters.of(267'734) == 3);
  const VocabularyClusters paper(Cutoffs{20'000, 60'000}, 267'735, 512);
  CHECK(paper[1].size == 40'000);
  CHECK(paper[2].size == 207'735);
  CHECK(VocabularyClusters(Cutoffs{4, 7}, 10, 17)[1].width == 4);  // rounded down
}

TEST_CASE("clusters with another divisor, and with their slots in the other order") {
  const Cutoffs cutoffs{5, 8};
  const VocabularyClusters one(cutoffs, 11, 9, 1), halves(cutoffs, 11, 9, 2, ClusterOrder::natural);
  const std::int64_t widths[] = {9, 4, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(one[i].width == 9);
    CHECK(halves[i].width == widths[i]);
  }
  CHECK(one.head_slot(1) == 6);
  CHECK(one.head_slot(2) == 5);
  CHECK(halves.head_slot(1) == 5);
  CHECK(halves.head_slot(2) == 6);
  const auto refused = [&](std::int64_t width, std::int64_t divisor) {
    return message_of<UsageError>([&] { VocabularyClusters::check(cutoffs, 11, width, divisor); });
  };
  CHECK_THAT(refused(3, 2),
             ContainsSubstring("3 / 2^2 after the cut-off 8") && ContainsSubstring("cutoffs = [5] would fit"));
  CHECK_THAT(refused(3, 0), ContainsSubstring("divisor must be at least 1, got 0"));
  CHECK_NOTHROW(VocabularyClusters::check(cutoffs, 11, 1, 1));
  CHECK(VocabularyClusters::fitting(cutoffs, 11, 1, 1) == cutoffs);
}

TEST_CASE("cut-offs that do not fit are refused with ones that do") {
  const Cutoffs released{20'000, 40'000, 200'000};
  CHECK_THAT(refusal(released, 205, 512), ContainsSubstring("cutoffs") && ContainsSubstring("20000") &&
                                              ContainsSubstring("vocabulary of 205") &&
                                              ContainsSubstring("cutoffs = [15, 30, 150] would fit"));
  CHECK_THAT(refusal({40, 20}, 100, 64), ContainsSubstring("increase, got 20 after 40") &&
                                             ContainsSubstring("vocabulary of 100") &&
                                             ContainsSubstring("cutoffs = [20, 40] would fit"));
  CHECK_THAT(refusal({20, 20}, 100, 64),
             ContainsSubstring("20 after 20") && ContainsSubstring("cutoffs = [20] would fit"));
  CHECK_THAT(refusal({0, 20}, 100, 64), ContainsSubstring("at least 1, got 0") && ContainsSubstring("[20] would fit"));
  CHECK_THAT(refusal({-5}, 100, 64), ContainsSubstring("got -5") && ContainsSubstring("would fit"));
  CHECK_THAT(refusal({50, 100}, 100, 64),
             ContainsSubstring("below the vocabulary of 100, got 100") && ContainsSubstring("[37, 75] would fit"));
  CHECK_THAT(refusal({10, 20, 30}, 100, 32), ContainsSubstring("32 / 4^3 after the cut-off 30") &&
                                                 ContainsSubstring("vocabulary of 100") &&
                                                 ContainsSubstring("cutoffs = [10, 20] would fit"));
  CHECK_THAT(refusal({10}, 100, 3), ContainsSubstring("3 / 4^1") && ContainsSubstring("cutoffs = []"));
  CHECK_THAT(refusal({7}, 1, 64), ContainsSubstring("cutoffs = []"));
  CHECK_NOTHROW(VocabularyClusters::check(released, 0, 512));  // a vocabulary that is not known yet
  CHECK_THROWS_AS(VocabularyClusters::check(Cutoffs{3, 2}, 0, 512), UsageError);
}

TEST_CASE("what is suggested instead of cut-offs does fit, whatever was asked for") {
  reference::RandomArrays random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::int64_t vocabulary = 1 + random.below(trial % 2 == 0 ? 40 : 300'000), width = 1 + random.below(600);
    Cutoffs cutoffs;
    for (std::int64_t i = 0; i <= random.below(4); ++i) cutoffs.push_back(random.below(300'000) - 1000);
    const Cutoffs fitting = VocabularyClusters::fitting(cutoffs, vocabulary, width);
    CAPTURE(vocabulary, width, cutoffs, fitting);
    CHECK_NOTHROW(VocabularyClusters::check(fitting, vocabulary, width));
    CHECK((!fitting.empty() || vocabulary < 12 || width < 4));
  }
}

TEST_CASE("a partition has every input and every target in its place, with padding or without") {
  const VocabularyClusters clusters(Cutoffs{20, 50, 80}, 100, 64);
  reference::RandomArrays random(1);
  std::vector<std::int32_t> inputs, targets;
  for (int i = 0; i < 700; ++i) {
    inputs.push_back(static_cast<std::int32_t>(random.below(80)));  // nothing in the last cluster
    targets.push_back(static_cast<std::int32_t>(random.below(100)));
  }
  TokenPartition partition;
  for (const bool padded : {true, false}) {
    CAPTURE(padded);
    partition.assign(clusters, inputs, targets, padded);
    std::vector<std::int64_t> joined;  // the words in the order of the clusters' vectors, -1 for padding
    for (std::size_t i = 0; i < clusters.count(); ++i)
      for (const std::int32_t id : partition.list(partition[i].inputs)) joined.push_back(id + clusters[i].first);
    const auto places = partition.list(partition.places());
    REQUIRE(places.size() == inputs.size());
    for (std::size_t row = 0; row < inputs.size(); ++row)
      CHECK(joined.at(static_cast<std::size_t>(places[row])) == inputs[row]);
    CHECK(partition[3].inputs.size == 0);
    CHECK((joined.size() > inputs.size()) == padded);

    std::vector<std::int64_t> found(targets.size(), -1);  // targets, put together from head and tails
    const auto head = partition.list(partition.head_targets());
    for (std::size_t row = 0; row < targets.size(); ++row)
      if (head[row] < clusters.head().size) found[row] = head[row];
    for (std::size_t i = 1; i < clusters.count(); ++i) {
      const TokenPartition::Cluster& tail = partition[i];
      const auto rows = partition.list(tail.rows), ids = partition.list(tail.targets),
                 counted = partition.list(tail.counted);
      CHECK(std::accumulate(counted.begin(), counted.end(), std::int64_t{0}) == tail.scored);
      CHECK(tail.rows.size == (padded ? TokenPartition::padded_count(tail.scored) : tail.scored));
      for (std::size_t place = 0; place < rows.size(); ++place) {
        if (counted[place] == 0) {
          CHECK(static_cast<std::int64_t>(place) >= tail.scored);
          CHECK((rows[place] == 0 && ids[place] == 0));
          continue;
        }
        const auto row = static_cast<std::size_t>(rows[place]);
        CHECK(found[row] == -1);
        CHECK(head[row] == clusters.head_slot(i));
        found[row] = ids[place] + clusters[i].first;
      }
    }
    CHECK(found == std::vector<std::int64_t>(targets.begin(), targets.end()));
    CHECK(static_cast<std::int64_t>(partition.values().size()) <= TokenPartition::most_values(clusters, 700));
  }
}

TEST_CASE("a partition with fewer targets than inputs counts the scored rows on their own") {
  const VocabularyClusters clusters(Cutoffs{20, 50}, 100, 16);
  TokenPartition partition;
  const std::vector<std::int32_t> inputs{3, 60, 21, 0, 99}, targets{50, 2, 30};
  partition.assign(clusters, inputs, targets, false);
  CHECK(partition.places().size == 5);
  const auto list = [&](TokenPartition::List part) {
    const auto values = partition.list(part);
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  using List = std::vector<std::int32_t>;
  CHECK(list(partition.head_targets()) == List{20, 2, 21});
  CHECK(list(partition[1].rows) == List{2});
  CHECK(list(partition[1].targets) == List{10});
  CHECK(list(partition[2].rows) == List{0});
  CHECK(list(partition[2].targets) == List{0});
  CHECK_THROWS_WITH(partition.assign(clusters, targets, inputs, false), ContainsSubstring("got 5 for 3"));
}

TEST_CASE("padded counts are few, near and never smaller") {
  std::int64_t before = 0, different = 0;
  for (std::int64_t count = 1; count <= 40'000; ++count) {
    const std::int64_t padded = TokenPartition::padded_count(count);
    CHECK((padded >= count && padded <= count + std::max<std::int64_t>(63, count / 4) && padded >= before));
    different += padded != before ? 1 : 0;
    before = padded;
  }
  CHECK(different < 40);
  CHECK(TokenPartition::padded_count(1) == 64);
  CHECK(TokenPartition::padded_count(64) == 64);
  CHECK(TokenPartition::padded_count(1000) == 1024);
  CHECK(TokenPartition::padded_count(1100) == 1280);
}

TEST_CASE("partitions without targets, and of no tail cluster") {
  const VocabularyClusters clusters(Cutoffs{20, 50}, 100, 16);
  TokenPartition partition;
  const std::vector<std::int32_t> inputs{3, 19, 0};
  partition.assign(clusters, inputs, {}, false);
  CHECK(partition.head_targets().size == 0);
  CHECK(partition[0].inputs.size == 3);
  CHECK(partition[1].inputs.size == 0);
  CHECK(partition[2].rows.size == 0);
  std::vector<std::int64_t> counts;
  partition.append_counts(counts);
  CHECK(counts == std::vector<std::int64_t>{3, 0, 0, 0, 0, 0});
}

}  // namespace
}  // namespace engram::harness::vocabulary_clusters_test
