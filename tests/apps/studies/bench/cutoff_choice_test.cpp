#include "apps/studies/bench/cutoff_choice.hpp"

#include <limits>
#include <numeric>
#include <vector>

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/studies/bench/cutoff_bench.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::cutoff_choice_test {
namespace {

/// The least sum over all choices of `left` further cut-offs after `first`.
double least_by_trying(std::int64_t vocabulary, std::size_t cluster, std::size_t left, std::int64_t first,
                       const ClusterSeconds& seconds) {
  if (left == 0) return seconds(cluster, first, vocabulary);
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t cut = first + 1; cut < vocabulary; ++cut)
    least = std::min(least,
                     seconds(cluster, first, cut) + least_by_trying(vocabulary, cluster + 1, left - 1, cut, seconds));
  return least;
}

TEST_CASE("cut-offs: the choice is the best of all", "[cutoffs]") {
  constexpr std::int64_t kVocabulary = 18;
  std::vector<std::int64_t> candidates(kVocabulary - 1);
  std::iota(candidates.begin(), candidates.end(), std::int64_t{1});
  reference::RandomArrays random(7);
  for (int trial = 0; trial < 20; ++trial) {
    // Any times at all: nothing makes larger clusters slower.
    std::vector<double> any(5 * (kVocabulary + 1) * (kVocabulary + 1));
    for (double& number : any) number = static_cast<double>(1 + random.below(1000));
    const ClusterSeconds seconds = [&](std::size_t cluster, std::int64_t first, std::int64_t end) {
      return any[(cluster * (kVocabulary + 1) + static_cast<std::size_t>(first)) * (kVocabulary + 1) +
                 static_cast<std::size_t>(end)];
    };
    for (std::size_t clusters = 2; clusters <= 4; ++clusters) {
      CAPTURE(trial, clusters);
      const CutoffPlan plan = cheapest_cutoffs(candidates, kVocabulary, clusters, seconds);
      REQUIRE(plan.cutoffs.size() == clusters - 1);
      for (std::size_t k = 1; k < plan.cutoffs.size(); ++k) CHECK(plan.cutoffs[k] > plan.cutoffs[k - 1]);
      CHECK(plan.seconds == least_by_trying(kVocabulary, 0, clusters - 1, 0, seconds));
      CHECK(plan.seconds == seconds_of_cutoffs(plan.cutoffs, kVocabulary, seconds));
    }
  }
  CHECK_THROWS_AS(cheapest_cutoffs(candidates, kVocabulary, 1, {}), UsageError);
  CHECK_THROWS_AS(cheapest_cutoffs(std::vector<std::int64_t>{1, 2}, 3, 4, {}), UsageError);
}

TEST_CASE("cut-offs: candidates are few, in order and within the vocabulary", "[cutoffs]") {
  for (const std::int64_t vocabulary : {2, 3, 65, 1000, 267735, 10'000'000}) {
    CAPTURE(vocabulary);
    const std::vector<std::int64_t> candidates = cutoff_candidates(vocabulary);
    REQUIRE(!candidates.empty());
    CHECK(candidates.front() == 1);
    CHECK(candidates.back() < vocabulary);
    CHECK(candidates.back() * 103 / 100 + 1 >= vocabulary - 1);
    CHECK(candidates.size() < 800);
    for (std::size_t i = 1; i < candidates.size(); ++i) CHECK(candidates[i] > candidates[i - 1]);
  }
}

TEST_CASE("cut-offs: times between measured sizes", "[cutoffs]") {
  // Seconds rows * columns, where both are at least 10.
  const MeasuredTimes times({10, 100}, {10, 1000}, {100, 10'000, 1000, 100'000});
  CHECK(times.at(10, 10) == Approx(100));
  CHECK(times.at(20, 300) == Approx(6000));
  CHECK(times.at(3, 10) == Approx(100));
  CHECK(times.at(3, 30) == Approx(300));
  CHECK(times.at(200, 3000) == Approx(600'000));
  CHECK_THROWS_AS(MeasuredTimes({1}, {1, 2}, {1, 2}), Error);
}

TEST_CASE("cut-offs: what is chosen for a text is timed beside the config's own", "[cutoffs]") {
  CutoffQuestion question{.rounds = 1};
  question.config.training.batch = 1;
  question.config.training.block = 64;
  AllAttentionOptions& model = question.config.model.all_attention;
  model.vocabulary = 300;
  model.layers = 1;
  model.slots = 4;
  model.max_span = 64;
  model.width = 32;
  model.heads = 2;
  model.cutoffs = {30, 100};
  const std::vector<std::int32_t> words = ranked_tokens(2000, model.vocabulary, 1);
  Runtime runtime(Device{}, 1);
  std::int64_t last = 0, all = 0;
  const CutoffReport report =
      choose_cutoffs(question, data::TokenView(words), runtime, [&](std::int64_t done, std::int64_t of) {
        CHECK(done == last + 1);
        last = done;
        all = of;
      });
  CHECK(last == all);
  CHECK(report.widths == std::vector<std::int64_t>{32, 8, 2});
  REQUIRE(report.own);
  CHECK(report.own->cutoffs == model.cutoffs);
  CHECK(report.chosen.predicted <= report.own->predicted);
  CHECK(report.chosen.seconds.size() == 1);
  VocabularyClusters::check(report.chosen.cutoffs, model.vocabulary, model.width);
  CHECK(table_of(report).find("--set model.cutoffs=") != std::string::npos);

  const auto chosen = [&] {
    return choose_cutoffs(question, data::TokenView(words), runtime, [](std::int64_t, std::int64_t) {});
  };
  question.clusters = 3;
  question.config.model.family = ModelFamily::recurrent;
  RecurrentOptions& recurrent = question.config.model.recurrent;
  recurrent.vocabulary = model.vocabulary;
  recurrent.width = 32;
  recurrent.readout = ReadoutKind::n_gram;
  recurrent.parts = 1;
  for (const bool tied : {false, true}) {
    recurrent.tie_tables = tied;
    CHECK(chosen().widths == std::vector<std::int64_t>{32, 8, 2});
  }
  // Both ends are timed as one table.
  recurrent.tie_tables = false;
  recurrent.embedding_width = 16;
  CHECK_THAT(message_of<UsageError>(chosen), ContainsSubstring("its softmax sees, 32, got 16"));
  question.config.model.family = ModelFamily::product_key;
  CHECK_THROWS_AS(chosen(), UsageError);
}

}  // namespace
}  // namespace engram::harness::cutoff_choice_test
