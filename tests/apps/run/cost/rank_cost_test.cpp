/// What is predicted of ranks against what they hold and send: to the byte.

#include <filesystem>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/rank_memory.hpp"
#include "apps/run/cost/rank_traffic.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/studies/bench/bench_model.hpp"
#include "core/files/json.hpp"
#include "nn/optim/weight_average.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/counted_ranks.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::rank_cost_test {
namespace {

constexpr const char* kRest = R"([schedule]
rate = 0.01
steps = 10
[training]
batch = 8
block = 6
split = 4
)";

struct CostVariant {
  const char* name;
  std::string config;
};

std::vector<CostVariant> variants() {
  return {{"spans, Adagrad", text(R"([model]
vocabulary = 11
layers = 3
width = 16
heads = 2
slots = 5
max_span = 48
ramp = 8
[optimizer]
clip = 0.5
)",
                                  kRest)},
          // The embedding is a bucket of its own; memories have tables and running statistics.
          {"tables, Adam", text(R"([model]
family = "product_key"
vocabulary = 9000
layers = 3
width = 256
heads = 2
position_rows = 24
[product_key]
layers = [1, 3]
subkeys = 6
heads = 2
selected = 3
query_width = 8
[optimizer]
kind = "adam"
clip = 5
table_mode = "deferred"
table_epsilon = 0
table_last_use = true
)",
                                kRest)},
          {"clusters, SGD", text(R"([model]
family = "transformer_xl"
vocabulary = 40
layers = 2
width = 16
heads = 2
inner = 24
memory = 8
cutoffs = [10, 20]
[optimizer]
kind = "sgd"
clip = 1
momentum = 0.9
)",
                                 kRest)},
          {"a mean of the weights", text(R"([model]
vocabulary = 11
layers = 1
width = 16
heads = 2
slots = 5
max_span = 48
ramp = 8
)",
                                         kRest, "weight_average = true\n")}};
}

data::Block block_for(const RunConfig& config) {
  data::Block block;
  block.rows = static_cast<int>(config.training.batch);
  block.length = static_cast<int>(config.training.block);
  block.scored_count = config.training.batch * config.training.block;
  block.scored.assign(static_cast<std::size_t>(block.scored_count), 1);
  block.inputs = random_tokens(block.scored_count, config.model.vocabulary(), 0);
  block.targets = random_tokens(block.scored_count, config.model.vocabulary(), 1);
  return block;
}

/// What one rank was seen to hold and to send in a step.
struct Seen {
  std::int64_t in_store = 0, besides = 0, losses = 0;
  CountedRank::Sent before, after;
};

Seen seen_on(const RunConfig& config, Communicator& ranks) {
  CountedRank counted(ranks);
  Runtime runtime(Device{}, 1, 5, &counted);
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  store.place(runtime.backend(), DType::f32, 3, {}, &runtime.ranks());
  Trainer trainer(config, *model, store, runtime);
  Seen seen;
  WeightAverage average(store);
  if (config.training.weight_average) runtime.in_step([&](Step& step) { average.start(step); });
  seen.in_store = static_cast<std::int64_t>(store.bytes_in_use());
  seen.besides = static_cast<std::int64_t>(runtime.bytes_in_use());
  seen.losses = config.training.split * (model->tokens().most_losses() + 1) * 4;
  const data::Block block = block_for(config);
  trainer.step(block);  // in the first one ranks agree on an order
  seen.before = counted.sent();
  trainer.step(block);
  runtime.ranks().any(false);  // whether to stop, which a run asks after every step
  seen.after = counted.sent();
  return seen;
}

TEST_CASE("ranks: what a rank keeps and sends is what is predicted, to the byte", "[ranks][night]") {
  for (const CostVariant& variant : variants()) {
    CAPTURE(variant.name);
    const RunConfig config = parse_run_config(variant.config, "test.toml");
    const std::unique_ptr<LanguageModel> model = make_model(config.model);
    ParameterStore unplaced;
    collect(*model, unplaced);
    std::vector<std::int64_t> state;  // of all ranks together
    for (const int count : {1, 2, 4}) {
      CAPTURE(count);
      const std::vector<RankMemory> predicted = rank_memory(rank_setting(config), unplaced, count);
      std::vector<Seen> seen(static_cast<std::size_t>(count));
      run_ranks(count,
                [&](Communicator& ranks) { seen[static_cast<std::size_t>(ranks.rank())] = seen_on(config, ranks); });
      for (int rank = 0; rank < count; ++rank) {
        CAPTURE(rank);
        const auto number = static_cast<std::size_t>(rank);
        const RankMemory& memory = predicted[number];
        CHECK(seen[number].in_store == memory.in_store());
        // Losses of the pieces are the only other thing before the first step.
        CHECK(seen[number].besides == memory.sums + memory.kept_buffers + seen[number].losses);
        const RankTraffic traffic = rank_traffic(rank_setting(config), unplaced, count, rank);
        const CountedRank::Sent &before = seen[number].before, &after = seen[number].after;
        // Lookups in tables exchange as well as gather.
        if (traffic.rows == 0) CHECK(after.exchanged - before.exchanged == traffic.exchanged());
        CHECK(after.exchanged + after.gathered - before.exchanged - before.gathered == traffic.total());
        CHECK(after.messages - before.messages == traffic.messages);
      }
      state.push_back(std::accumulate(predicted.begin(), predicted.end(), std::int64_t{0},
                                      [](std::int64_t sum, const RankMemory& memory) { return sum + memory.state; }));
    }
    const bool tables = config.model.memories().any();
    if (tables) CHECK_THROWS_AS(rank_memory(rank_setting(config), unplaced, 16), UsageError);
    // It is divided, and nothing of it is lost.
    CHECK(state[0] > 0);
    CHECK(state[1] == state[0]);
    CHECK(state[2] == state[0]);
  }
}

TEST_CASE("ranks: bf16 copies are counted as a store makes them", "[ranks]") {
  RunConfig config = parse_run_config(variants().front().config, "test.toml");
  config.training.activations = ActivationPrecision::bf16;
  Runtime runtime;
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  const RankMemory predicted = largest_rank_memory(rank_setting(config), store, 2);
  store.place(runtime.backend(), DType::f32, 3);
  const std::size_t before = store.bytes_in_use();
  runtime.in_step([&](Step& step) { store.keep_rounded(step); });
  CHECK(static_cast<std::int64_t>(store.bytes_in_use() - before) == predicted.rounded);
  CHECK(predicted.rounded > 0);
}

TEST_CASE("ranks: memory for the state of the optimiser falls with their number", "[ranks]") {
  const std::filesystem::path configs = std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs";
  RunConfig config = load_run_config(configs / "all-attention/enwik8-all-attention-large.toml");
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  config.training.split = 64;
  const RankMemory alone = largest_rank_memory(rank_setting(config), store, 1);
  for (const int count : {2, 8, 64}) {
    const RankMemory largest = largest_rank_memory(rank_setting(config), store, count);
    CHECK(largest.values == alone.values);
    // No rank has more than its share and a chunk of each bucket: there are at most one for each of 36 layers and two.
    CHECK(largest.state <= alone.state / count + 38 * kSegmentChunk * 4);
    CHECK(largest.exchange == (count - 1) * largest.state);
    // As many pieces, and fewer of them on each: 64 keep six sums, 64 / count fewer.
    CHECK(largest.sums < alone.sums);
  }
  CHECK(alone.sums == 6 * alone.gradients);
}

TEST_CASE("ranks: what is waited for is what comes after backward, bucket by bucket", "[ranks]") {
  RankTraffic traffic;
  traffic.buckets = {{.exchanged = 100, .gathered = 30, .final_after = 0.25},
                     {.exchanged = 300, .gathered = 20, .final_after = 0.5},
                     {.exchanged = 50, .gathered = 10, .final_after = 1}};
  traffic.squares = 8;
  traffic.losses = 2;
  traffic.rounds = 3;
  const RankLink link{.bytes_per_second = 100, .latency_seconds = 0.5};
  const StepPrediction on_link = predict_link(traffic, link);
  CHECK(on_link.exchange_seconds == Approx(3 * 0.5 + 4.5));
  CHECK(on_link.gather_seconds == Approx(3 * 0.5 + 0.7));
  // Two pieces of 6 s each, 4 s of a piece backward. Buckets leave at 1, 2.5 (the link is busy from 1 to 2.5) and 6,
  // and have arrived at 2.5, 6 and 7.
  const StepPrediction step = predict_step(traffic, link, 12, 2, 2);
  CHECK(step.exposed_seconds == Approx(3));
  CHECK(step.hidden() == Approx(0.5));
  CHECK(step.step_seconds == Approx(6 + 3 + 2.2));
  CHECK(step.efficiency == Approx(12 / (2 * 11.2)));
  // A piece of an hour hides all but the last bucket.
  CHECK(predict_step(traffic, link, 7200, 2, 2).exposed_seconds == Approx(1));
  // And none hides nothing.
  CHECK(predict_step(traffic, link, 1e-9, 2, 2).hidden() == Approx(0).margin(1e-9));
}

TEST_CASE("engram count says what ranks keep, send and wait for", "[ranks]") {
  const std::string config =
      std::string(ENGRAM_SOURCE_DIR) + "/apps/configs/all-attention/enwik8-all-attention-small.toml";
  const auto counted = [&](const Arguments& more) {
    Arguments arguments{"count", "--config", config};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_engram(arguments);
  };
  const nlohmann::json ranks =
      nlohmann::json::parse(
          counted({"--ranks", "8", "--bandwidth", "100", "--latency", "10", "--step-seconds", "40", "--json"}).out)
          .at("ranks");
  const nlohmann::json& memory = ranks.at("memory");
  CHECK(ranks.at("ranks") == 8);
  CHECK(ranks.at("split") == 8);
  CHECK(memory.at("one_rank").at("received_gradients") == 0);
  CHECK(memory.at("largest_rank").at("optimizer_state").get<double>() ==
        Approx(memory.at("one_rank").at("optimizer_state").get<double>() / 8).epsilon(0.07));
  CHECK(ranks.at("bytes_sent_per_step").at("gradients").get<double>() ==
        Approx(memory.at("one_rank").at("gradients").get<double>() * 7 / 8).epsilon(0.02));
  const nlohmann::json& prediction = ranks.at("prediction");
  CHECK(prediction.at("exchange_seconds").get<double>() >
        ranks.at("bytes_sent_per_step").at("gradients").get<double>() * 8 / 100e9);
  CHECK(prediction.at("efficiency").get<double>() > 0.9);
  CHECK(prediction.at("efficiency").get<double>() < 1);

  const ProcessResult printed = counted({"--ranks", "8", "--split", "16", "--bandwidth", "100"});
  CHECK_THAT(printed.out, ContainsSubstring("8 ranks, 2 of 16 pieces each\n") && ContainsSubstring("optimiser state") &&
                              ContainsSubstring("--step-seconds"));
  std::istringstream lines(printed.out.substr(printed.out.find("8 ranks")));
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);

  CHECK_THAT(counted({"--ranks", "7"}).err, ContainsSubstring("batch must be a multiple of 7 for 7 ranks, got 64"));
  CHECK_THAT(counted({"--ranks", "8", "--split", "5"}).err, ContainsSubstring("split must be a divisor of batch 64"));
  CHECK_THAT(counted({"--bandwidth", "100"}).err, ContainsSubstring("--ranks"));
}

}  // namespace
}  // namespace engram::harness::rank_cost_test
