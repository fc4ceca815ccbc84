/// Runs of several ranks, which are threads of this process: the bits of one rank, for every number of them.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>

#include "apps/run/config/run_config_file.hpp"
#include "apps/terminal/signals.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::ranks_run_test {
namespace {

/// Trains on so many ranks. `stop` makes what each of them asks.
void train(TrainingRunOptions options, int count, const std::function<std::function<bool()>()>& stop = never) {
  if (count == 1) {
    run_training(options, stop());
    return;
  }
  run_ranks(count, [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    run_training(own, stop());
  });
}

/// What a run's log says of its model: without times, and what depends on the machine.
std::vector<nlohmann::json> log_of(const TrainingRunOptions& options) {
  std::istringstream lines(get_file(options.out / "metrics.jsonl"));
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    if (!std::set<std::string>{"train", "valid_short", "gradients"}.contains(object.at("event"))) continue;
    for (const char* name : {"time", "seconds", "tokens_per_second"}) object.erase(name);
    found.push_back(std::move(object));
  }
  return found;
}

struct Variant {
  const char* name;
  std::string config;
  std::vector<std::string> overrides = {};
  std::vector<int> counts = {2, 4};
  bool articles = false;  // of words
};

std::string language_model_config(const std::string& model, const std::string& optimizer) {
  return "[model]\nlayers = 2\nwidth = 16\nheads = 2\n" + model + "[optimizer]\n" + optimizer + R"([schedule]
rate = 0.01
steps = 12
[training]
batch = 8
block = 20
split = 4
validate_every = 5
validate_blocks = 2
report_every = 3
checkpoint_every = 6
seed = 11
)";
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Variant> variants() {
  const std::string adam = "kind = \"adam\"\nclip = 0.25\n";
  const std::string selection = "subkeys = 6\nheads = 2\nselected = 4\nquery_width = 8\n";
  const std::string product_key = "family = \"product_key\"\nposition_rows = 24\ndropout = 0.1\n[product_key]\n";
  const std::string memory = product_key + "count = 1\n" + selection;
  return {
      {"all-attention",
       small_config(),
       {"training.split=4", "schedule.steps=12", "training.gradient_report=true", "training.weight_average=true"}},
      {"three ranks", small_config(), {"training.split=3", "training.batch=6", "schedule.steps=6"}, {3}},
      {"two pieces each",
       small_config(),
       {"training.split=4", "schedule.steps=6", "model.span=\"dynamic\"", "optimizer.clip_kind=gradient",
        "optimizer.clip=0.03"},
       {2}},
      {"bf16 products", small_config(), {"training.split=4", "schedule.steps=6", "training.products=bf16"}},
      {"transformer-xl", language_model_config("family = \"transformer_xl\"\ninner = 24\nmemory = 24\n", adam)},
      {"sgd", language_model_config("family = \"transformer_xl\"\ninner = 24\nmemory = 24\n",
                                    "kind = \"sgd\"\nclip = 1\nmomentum = 0.9\nnesterov = true\n")},
      {"product-key", language_model_config(memory, adam)},
      {"product-key, two memories of one table, on eight",
       language_model_config(product_key + "layers = [1, 2]\nshared_values = true\n" + selection,
                             adam + "table_mode = \"dense\"\ntable_last_use = true\n"),
       {"training.split=8"},
       {2, 8}},
      {"transformer-xl with flat keys, row-wise",
       language_model_config("family = \"transformer_xl\"\ninner = 24\nmemory = 24\n[product_key]\nlayers = [2]\n"
                             "keys = \"flat\"\nvalue_dtype = \"bf16\"\nvalue_width = 8\nprojection = true\n" +
                                 selection,
                             adam + "table_kind = \"row_adagrad\"\ntable_clip = 0.5\n")},
      {"all-attention with a memory",
       language_model_config(
           "max_span = 24\nslots = 3\n[product_key]\nlayers = [1]\nplacement = \"after\"\n" + selection,
           adam + "table_mode = \"row_step\"\ntable_weight_decay = 0.01\n"),
       {"training.split=8"},
       {4}},
      {"product-key, deferred and rounded",
       language_model_config(memory + "value_dtype = \"bf16\"\n", adam + R"(table_mode = "deferred"
table_epsilon = 0
table_clip = 1
)")},
      {"recurrent",
       recurrent_config(),
       {"training.split=4", "schedule.steps=20", "training.report_every=4"},
       {2, 4},
       true},
      {"recurrent layers with dropout, in clusters",
       recurrent_config(),
       joined(recurrent_dropout(),
              {"training.split=4", "schedule.steps=12", "model.layers=2", "model.cutoffs=[3, 6]", "model.divisor=2"}),
       {4},
       true},
      {"quasi-recurrent",
       recurrent_config(),
       {"training.split=2", "schedule.steps=9", "model.encoder=qrnn", "model.layers=2", "model.layer_dropout=0.2"},
       {2},
       true},
      {"clusters of words", language_model_config("max_span = 24\nslots = 3\ncutoffs = [4, 8]\n", adam), {}, {4}, true},
  };
}

/// What the runs of the variants did: equal bits of what never happened would mean nothing.
struct Happened {
  std::set<std::string> clipped;  // kinds of clipping that changed gradients
  int spans_moved = 0, statistics_moved = 0;

  void look_at(const TrainingRunOptions& run) {
    std::set<std::string> spans;
    for (const nlohmann::json& line : log_of(run)) {
      if (line.at("event") != "train") continue;
      if (line.at("tensors_above_clip") > 0)
        clipped.insert(std::string(name_of(load_run_config(run.out / "config.toml").optimizer.clip_kind)));
      if (line.contains("spans")) spans.insert(line.at("spans").dump());
    }
    if (spans.size() > 1) ++spans_moved;
    const CheckpointFile file(checkpoint_path(run.out, CheckpointKind::newest));
    for (const std::string& name : file.names()) {
      if (!name.ends_with(".running_mean")) continue;
      const auto bytes = file.bytes(file.at(name));
      if (std::ranges::any_of(bytes, [](std::byte one) { return one != std::byte{}; })) ++statistics_moved;
    }
  }
};

TEST_CASE("ranks: a run of several has the bits of one", "[ranks][night]") {
  const RunFolder folder;
  const ArticleFolder articles(7);
  Happened happened;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const auto options_of = [&](int count) {
      TrainingRunOptions options = run_options(folder, text(variant.name, " ", count));
      if (variant.articles) options.data = articles.data();
      options.config = put_file(folder / "variant.toml", variant.config);
      options.overrides = variant.overrides;
      return options;
    };
    const TrainingRunOptions one = options_of(1);
    train(one, 1);
    happened.look_at(one);
    for (const int count : variant.counts) {
      CAPTURE(count);
      const TrainingRunOptions several = options_of(count);
      train(several, count);
      CHECK(newest_checkpoint(several) == newest_checkpoint(one));
      CHECK(get_file(checkpoint_path(several.out, CheckpointKind::best)) ==
            get_file(checkpoint_path(one.out, CheckpointKind::best)));
      CHECK(log_of(several) == log_of(one));
    }
  }
  CHECK(happened.clipped == std::set<std::string>{"step", "gradient", "global"});
  CHECK(happened.spans_moved > 0);
  CHECK(happened.statistics_moved > 0);
}

TEST_CASE("ranks: devices that work behind the host have the bits of one rank too", "[ranks]") {
  if (!has_simulated_device()) return;
  const RunFolder folder;
  const ArticleFolder articles(7);
  for (const Variant& variant : variants()) {
    const std::string name = variant.name;
    // The columns of a table that a rank has there are whole vectors of memory.
    if (!std::set<std::string>{"all-attention", "transformer-xl", "product-key, deferred and rounded", "recurrent"}
             .contains(name))
      continue;
    CAPTURE(name);
    const auto options_of = [&](int count) {
      TrainingRunOptions options = run_options(folder, text(name, " ", count));
      if (variant.articles) options.data = articles.data();
      options.device = {DeviceKind::simulated, 0};
      options.config = put_file(folder / "variant.toml", variant.config);
      options.overrides = variant.overrides;
      for (const char* shorter : {"training.split=2", "schedule.steps=3", "training.validate_every=3"})
        options.overrides.emplace_back(shorter);
      // Which the CPU has no kernels for.
      if (name == "transformer-xl") options.overrides.emplace_back("training.activations=bf16");
      return options;
    };
    train(options_of(1), 1);
    train(options_of(2), 2);
    CHECK(newest_checkpoint(options_of(2)) == newest_checkpoint(options_of(1)));
  }
}

TEST_CASE("ranks: a run stopped on four goes on alone and then on two, to the bits of one that was not",
          "[ranks][night]") {
  const RunFolder folder;
  // The latter is stopped where rows of its table wait to be brought up to date.
  for (const Variant& variant : variants()) {
    const std::string name = variant.name;
    if (name != "all-attention" && name != "product-key, deferred and rounded") continue;
    CAPTURE(name);
    const auto options_of = [&](const std::string& out) {
      TrainingRunOptions options = run_options(folder, name + out);
      options.config = put_file(folder / "variant.toml", variant.config);
      options.overrides = variant.overrides;
      return options;
    };
    const TrainingRunOptions whole = options_of("whole");
    train(whole, 1);
    TrainingRunOptions parts = options_of("parts");
    CHECK_THROWS_AS(train(parts, 4, [] { return after_steps(4); }), Interrupted);
    parts.resume = true;
    CHECK_THROWS_AS(train(parts, 1, [] { return after_steps(3); }), Interrupted);
    CHECK_THROWS_AS(train(parts, 4, [] { return after_steps(2); }), Interrupted);
    train(parts, 2);
    CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
  }
}

TEST_CASE("ranks: whatever rank is told to stop, all do", "[ranks]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  const auto train_on = [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    run_training(own, ranks.leads() ? never() : after_steps(3));
  };
  CHECK_THROWS_AS(run_ranks(2, train_on), Interrupted);
  CHECK(CheckpointFile(checkpoint_path(options.out, CheckpointKind::newest)).metadata().at("engram.step") == "3");
}

TEST_CASE("ranks: pieces that they cannot share, and ranks that would train something else, are refused", "[ranks]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  for (const Variant& variant : variants())
    if (variant.name == std::string("product-key")) put_file(folder / "memory.toml", variant.config);
  const auto refused = [&](int count, const std::function<void(TrainingRunOptions&, int)>& change) {
    std::string message;
    try {
      run_ranks(count, [&](Communicator& ranks) {
        TrainingRunOptions own = options;
        own.ranks = &ranks;
        change(own, ranks.rank());
        run_training(own, never());
      });
    } catch (const Error& error) {
      message = error.what();
    }
    return message;
  };
  CHECK_THAT(refused(3, [](TrainingRunOptions&, int) {}),
             ContainsSubstring("batch must be a multiple of 3 for 3 ranks, got 4"));
  CHECK_THAT(refused(2,
                     [](TrainingRunOptions& own, int rank) {
                       if (rank == 1) own.overrides = {"training.seed=12"};
                     }),
             ContainsSubstring("ranks: the configuration must be the same everywhere"));
  CHECK_THAT(refused(2,
                     [](TrainingRunOptions& own, int rank) {
                       if (rank == 1) own.data = "/nowhere";
                     }),
             ContainsSubstring("rank 1 (thread 1): "));
  CHECK_THAT(refused(3,
                     [](TrainingRunOptions& own, int) {
                       own.config = own.config.parent_path() / "memory.toml";
                       own.overrides = {"training.split=3", "training.batch=6"};
                     }),
             ContainsSubstring("1, 2, 4 or 8 ranks share the columns of a table") &&
                 ContainsSubstring("got 3 ranks for layers.0.memory.values.rows of width 16"));
  CHECK_FALSE(std::filesystem::exists(options.out));
}

}  // namespace
}  // namespace engram::harness::ranks_run_test
