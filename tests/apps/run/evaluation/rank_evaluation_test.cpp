/// Evaluations by several ranks, which are threads of this process: the bits of one rank, for every number of them.

#include <algorithm>
#include <map>
#include <mutex>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/part_findings.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/training/session.hpp"
#include "core/error.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::rank_evaluation_test {
namespace {

constexpr std::int64_t kTokens = 2500;

/// All that an evaluation says, but for its seconds.
struct Found {
  double nll_sum = 0;
  std::int64_t scored = 0, inputs = 0, parts = 0;
  int rows = 0;
  std::vector<std::pair<std::int64_t, double>> losses;  // in the order in which they were heard of
  std::vector<double> usage;                            // of memories
  std::vector<double> spans;

  friend bool operator==(const Found&, const Found&) = default;
};

Found evaluated(const std::filesystem::path& run, const data::ArticleSplit& split, SplitEvaluationOptions way,
                Communicator* ranks) {
  Runtime runtime({}, 1);
  TrainedModel trained(run, CheckpointKind::newest, runtime);
  ModelProductKeyUsage usage(trained.config().model);
  Found found;
  way.ranks = ranks;
  way.begins = [&found](std::int64_t parts) { found.parts = parts; };
  const SplitEvaluation result =
      evaluate_split(trained, split, way,
                     {.found = [&](std::int64_t token, double nll) { found.losses.emplace_back(token, nll); },
                      .reads = usage.reads()});
  found.nll_sum = result.result.nll_sum;
  found.scored = result.result.scored;
  found.inputs = result.result.inputs;
  found.rows = result.rows;
  for (const ModelProductKeyUsage::Memory& memory : usage.memories()) {
    const ProductKeyUsage::Metrics metrics = memory.usage.metrics();
    found.usage.insert(found.usage.end(), {metrics.total_weight, metrics.kl, metrics.usage, metrics.score_entropy});
  }
  if (const AllAttentionModel* const spanned = all_attention_of(trained.model()))
    for (std::int64_t layer = 0; layer < spanned->options().layers; ++layer)
      for (const double zeta : spanned->span(layer).zeta()) found.spans.push_back(zeta);
  return found;
}

struct Way {
  const char* name;
  SplitEvaluationOptions options;
  std::int64_t parts;  // that can be computed at a time
};

/// Every number of ranks finds what one does.
void check_ways(const TrainingRunOptions& run, const data::ArticleSplit& split, const std::vector<Way>& ways) {
  run_training(run, never());
  for (const Way& way : ways) {
    CAPTURE(way.name);
    const Found one = evaluated(run.out, split, way.options, nullptr);
    CHECK(one.parts == way.parts);
    CHECK(one.scored == std::ssize(one.losses));
    for (const int count : {2, 3, 4}) {
      CAPTURE(count);
      std::mutex mutex;
      std::vector<Found> all;
      run_ranks(count, [&](Communicator& ranks) {
        Found found = evaluated(run.out, split, way.options, &ranks);
        const std::lock_guard lock(mutex);
        all.push_back(std::move(found));
      });
      REQUIRE(std::ssize(all) == count);
      for (const Found& found : all) CHECK((found == one));
    }
  }
}

/// A run of a few steps of a small model.
TrainingRunOptions small_run(const RunFolder& folder, const std::string& name, const std::string& model) {
  TrainingRunOptions options = run_options(folder, name);
  options.config = put_file(folder / (name + ".toml"), "[model]\nlayers = 2\nwidth = 16\nheads = 2\n" + model + R"(
[schedule]
rate = 0.01
[training]
batch = 4
block = 40
)");
  options.steps = 3;
  return options;
}

data::ArticleSplit tokens_of(const data::DataSet& set) { return set.split("train").beginning(kTokens); }

TEST_CASE("evaluation by ranks: all-attention, with spans of heads and of queries", "[ranks]") {
  const RunFolder folder;
  const data::DataSet set = data::DataSet::open(folder.data());
  const std::string model = "slots = 3\nmax_span = 24\nramp = 8\n";
  check_ways(small_run(folder, "heads", model), tokens_of(set),
             {{"paper", {}, 2},
              {"paper, a stream each", {.batch = 3, .block = 150}, 3},
              {"exact", {.exact = true, .batch = 5, .block = 60}, 2},
              {"one stream", {.exact = true, .batch = 1}, 1},
              {"sliding",
               {
                   .batch = 4,
                   .window = 30,
                   .stride = 10,
               },
               65},
              {"apart", {.batch = 16, .window = 30, .apart = true}, 7}});
  // Of several exchanges.
  check_ways(small_run(folder, "long", model), set.split("train"), {{"paper", {}, 2}});
  check_ways(small_run(folder, "queries", model + "span = \"dynamic\"\n"), tokens_of(set),
             {{"paper", {}, 2}, {"paper, long blocks", {.block = 130}, 8}});
}

TEST_CASE("evaluation by ranks: Transformer-XL, with a memory of product keys", "[ranks]") {
  const RunFolder folder;
  const data::DataSet set = data::DataSet::open(folder.data());
  const std::string model = "family = \"transformer_xl\"\ninner = 24\nmemory = 24\n";
  const std::string memory = "[product_key]\nlayers = [2]\nsubkeys = 6\nheads = 2\nselected = 4\nquery_width = 8\n";
  check_ways(small_run(folder, "xl", model + memory), tokens_of(set),
             {{"paper", {}, 3}, {"exact", {.exact = true}, 1}, {"sliding", {.window = 40, .stride = 20}, 6}});
}

TEST_CASE("evaluation by ranks: product-key models remember nothing, so blocks are shared", "[ranks]") {
  const RunFolder folder;
  const data::DataSet set = data::DataSet::open(folder.data());
  const std::string memory = "[product_key]\ncount = 1\nsubkeys = 6\nheads = 2\nselected = 4\nquery_width = 8\n";
  check_ways(
      small_run(folder, "pk", "family = \"product_key\"\nposition_rows = 48\n" + memory), tokens_of(set),
      {{"paper", {}, 7}, {"exact", {.exact = true}, 63}, {"apart", {.batch = 20, .window = 40, .apart = true}, 5}});
}

TEST_CASE("evaluation by ranks: articles of recurrent models, with a cache and without, and clusters of words",
          "[ranks]") {
  const ArticleFolder folder;
  const data::DataSet set = data::DataSet::open(folder.data());
  TrainingRunOptions options = recurrent_run(folder, "recurrent");
  options.steps = 3;
  check_ways(options, {set, "train"},
             {{"articles", {}, 1},
              {"in pieces", {.batch = 6, .block = 70}, 3},
              {"with a cache", {.batch = 7, .block = 90, .cache = {.positions = 20, .theta = 0.5, .lambda = 0.2}}, 4}});
  const data::DataSet flat = data::DataSet::open(folder.flat());
  TrainingRunOptions clusters = recurrent_run(folder, "clusters", {"model.family=transformer_xl"});
  clusters.data = folder.flat();
  clusters.config = put_file(folder / "clusters.toml", R"([model]
family = "transformer_xl"
layers = 1
width = 16
heads = 2
inner = 16
memory = 10
cutoffs = [4, 8]
[schedule]
rate = 0.01
[training]
batch = 4
block = 40
)");
  clusters.overrides.clear();
  clusters.steps = 3;
  check_ways(clusters, flat.split("train").beginning(kTokens), {{"paper", {}, 3}});
}

TEST_CASE("evaluation by ranks: one that fails in the middle ends all, in training's validation too", "[ranks]") {
  const RunFolder folder;
  const TrainingRunOptions run = small_run(folder, "run", "slots = 3\nmax_span = 24\nramp = 8\n");
  run_training(run, never());
  const data::DataSet set = data::DataSet::open(folder.data());
  std::mutex mutex;
  int told = 0;
  // What each rank ends with: the one that fails with its own error, the others because it is gone.
  const auto fails_on_one = [&](const std::function<void(Communicator&, const TokenLoss&)>& evaluate_all) {
    told = 0;
    const auto on_rank = [&](Communicator& ranks) {
      std::int64_t heard = 0;
      const auto found = [&](std::int64_t, double) {
        if (ranks.rank() == 1 && ++heard == 700) throw FileError("rank 1 can no more");
      };
      try {
        evaluate_all(ranks, found);
      } catch (const RankError&) {
        const std::lock_guard lock(mutex);
        ++told;
        throw;
      }
    };
    CHECK_THROWS_AS(run_ranks(3, on_rank), FileError);
    CHECK(told == 2);
  };
  fails_on_one([&](Communicator& ranks, const TokenLoss& found) {
    Runtime runtime({}, 1);
    TrainedModel trained(run.out, CheckpointKind::newest, runtime);
    evaluate_split(trained, set.split("train"), {.ranks = &ranks}, {.found = found});
  });
  fails_on_one([&](Communicator& ranks, const TokenLoss& found) {
    RunConfig config =
        resolved_config(load_run_config(run.config, {"schedule.steps=3", "training.split=3", "training.batch=6",
                                                     "training.block=12", "training.validate_blocks=30"}),
                        set);
    Runtime runtime(Device{}, 1, 1, &ranks);
    TrainingSession session(config, set, runtime, DType::f32);
    for (int pass = 0; pass < 9; ++pass) session.validate({.found = found});
  });
}

TEST_CASE("validation in training: rows that training.split does not divide stay together, on every rank", "[ranks]") {
  const RunFolder folder(1500);  // few rows
  TrainingRunOptions run = small_run(folder, "run", "slots = 3\nmax_span = 24\nramp = 8\n");
  run.overrides = {"training.batch=4", "training.split=2", "training.block=24", "training.validate_every=1"};
  const auto train = [&](int count) {
    TrainingRunOptions own = run;
    own.out = folder / text(count);
    if (count == 1)
      run_training(own, never());
    else
      run_ranks(count, [&](Communicator& ranks) {
        TrainingRunOptions of_rank = own;
        of_rank.ranks = &ranks;
        run_training(of_rank, never());
      });
    return newest_checkpoint(own);
  };
  const data::DataSet set = data::DataSet::open(folder.data());
  REQUIRE(data::largest_rows(set.split("valid").size(), 24) % 2 == 1);
  CHECK(train(2) == train(1));
}

TEST_CASE("evaluation by ranks: findings come back as they were told, and no less than that", "[ranks]") {
  const PartFindings found{
      .losses = {1.5, -0.0}, .zetas = {{0.25}, {}}, .reads = {{.layer = 3, .ids = {7, 8}, .weights = {0.5, 0.5}}}};
  std::string bytes;
  found.append_to(bytes);
  found.append_to(bytes);
  std::string_view left = bytes;
  for (int i = 0; i < 2; ++i) {
    const PartFindings back = PartFindings::take_from(left);
    CHECK(back.losses == found.losses);
    CHECK(back.zetas == found.zetas);
    CHECK(back.reads.at(0).layer == 3);
    CHECK(back.reads.at(0).ids == found.reads[0].ids);
    CHECK(back.reads.at(0).weights == found.reads[0].weights);
  }
  CHECK(left.empty());
  for (std::size_t length = 0; length < bytes.size() / 2; length += 5) {
    std::string_view part = std::string_view(bytes).substr(0, length);
    CHECK_THROWS_AS(PartFindings::take_from(part), Error);
  }
}

}  // namespace
}  // namespace engram::harness::rank_evaluation_test
