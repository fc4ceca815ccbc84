/// Parameters that training leaves as they are: training.freeze.

#include <cmath>
#include <set>

#include "apps/run/cost/rank_memory.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/gradient_report.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::freeze_test {
namespace {

bool is_statistic(const std::string& name) { return name.find(".running_") != std::string::npos; }

/// After a step with everything that any pattern matches frozen.
Values after_step(const std::string& toml, const RunFolder& folder, std::vector<std::string> overrides) {
  SmallModel model(toml, folder.data(), std::move(overrides));
  return model.train(1).values();
}

/// With each of these patterns: what it matches stays, and all else moves as it does without it, to the last bit.
/// Updates of one tensor must not depend on others: nothing is clipped over all of them.
void check_patterns(const std::string& toml, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& patterns, std::string_view part) {
  const RunFolder folder;
  SmallModel start(toml, folder.data(), overrides);
  const Values before = start.values(), whole = after_step(toml, folder, overrides);
  for (const std::string& pattern : patterns) {
    std::vector<std::string> with = overrides;
    with.push_back("training.freeze=" + pattern);
    const Values after = after_step(toml, folder, with);
    for (const auto& [name, values] : after) {
      CAPTURE(part, pattern, name);
      const bool frozen = pattern == "layers.0.*" ? name.starts_with("layers.0.") : name == pattern;
      CHECK(values == (frozen ? before : whole).at(name));
    }
  }
}

/// Every tensor by itself, and the whole of the first layer where there are layers.
void check_every_tensor(const std::string& toml, const std::vector<std::string>& overrides, std::string_view part) {
  const RunFolder folder;
  SmallModel model(toml, folder.data(), overrides);
  std::vector<std::string> patterns;
  bool layers = false;
  for (const auto& [name, parameter] : model.session.store.parameters()) {
    layers |= name.starts_with("layers.0.");
    // Statistics are of a batch norm as a whole; of equal layers one will do.
    if (!is_statistic(name) && !name.starts_with("layers.1.")) patterns.push_back(name);
  }
  if (layers) patterns.emplace_back("layers.0.*");
  check_patterns(toml, overrides, patterns, part);
}

TEST_CASE("what is frozen keeps its bytes, and all else trains as if nothing were: every tensor of every family") {
  check_every_tensor(small_config(), {"model.span_init=0.5"}, "adagrad, clipped by tensor");
  check_every_tensor(small_config(),
                     {"model.span=dynamic", "model.memory_mode=ff_attn", "model.slots=0", "model.inner=8",
                      "optimizer.kind=sgd", "optimizer.clip=0", "training.split=1"},
                     "sgd");
  check_every_tensor(small_xl_config(), {"optimizer.weight_decay=0.1"}, "transformer-xl, adam with decay");
  check_every_tensor(small_memory_config(), {"training.split=3", "training.batch=6"}, "product keys");
  check_every_tensor(small_memory_config(),
                     {"product_key.shared_values=true", "optimizer.table_mode=deferred", "optimizer.table_epsilon=0"},
                     "one table for two memories");
  check_every_tensor(small_recurrent_config(), {}, "recurrent");
}

TEST_CASE("frozen: clusters of words, of which some losses depend on nothing that is trained") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 900; ++i) text += std::string(1, static_cast<char>('a' + i * i % 11)) + (i % 7 == 0 ? "\n" : " ");
  const auto words = make_data(folder / "words", text, data::TokenKind::word);
  const std::vector<std::string> overrides{"model.cutoffs=[3,6]", "model.divisor=2", "training.batch=2"};
  SmallModel whole(small_xl_config(), words, overrides);
  const Values before = whole.values(), after = whole.train(1).values();
  std::vector<std::string> frozen = overrides;
  frozen.emplace_back(
      "training.freeze=layers.*,embedding.*,position_biases.*,output.cluster_head.*,output.clusters.[02].*");
  SmallModel model(small_xl_config(), words, frozen);
  model.session.step();
  for (const auto& [name, values] : model.values()) {
    CAPTURE(name);
    CHECK(values == (name.starts_with("output.clusters.1.") ? after : before).at(name));
  }
}

TEST_CASE("a frozen batch norm keeps its statistics") {
  const RunFolder folder;
  SmallModel model(small_memory_config(), folder.data(), {"training.freeze=layers.0.*"});
  const Values before = model.values(), after = model.train(3).values();
  for (const auto& [name, values] : after)
    if (is_statistic(name)) CHECK((values == before.at(name)) == name.starts_with("layers.0."));
}

TEST_CASE("frozen parameters have no part in the norm that gradients are clipped by, and no state") {
  const RunFolder folder;
  const std::vector<std::string> overrides{"optimizer.kind=sgd", "optimizer.clip=0.001", "schedule.rate=1",
                                           "schedule.decay=none", "training.freeze=[lep]*"};
  SmallModel model(small_xl_config(), folder.data(), overrides);
  const std::vector<double> before = model.values().at("output.bias");
  model.train(1);
  CHECK(model.session.trainer.optimizer().gradient_norms(model.runtime.backend()).size() == 1);
  double squares = 0;
  const std::vector<double> after = model.values().at("output.bias");
  for (std::size_t i = 0; i < before.size(); ++i) squares += (after[i] - before[i]) * (after[i] - before[i]);
  CHECK(std::sqrt(squares) == Approx(0.001).epsilon(0.01));
  std::set<std::string> state;
  model.session.trainer.optimizer().visit_state(
      [&](const std::string& name, const Tensor&, const std::optional<Division>&) { state.insert(name); });
  CHECK(state == std::set<std::string>{"output.bias.velocity"});
}

TEST_CASE("frozen: a report of gradients leaves out what has none") {
  const RunFolder folder;
  SmallModel model(small_config(), folder.data(),
                   {"training.freeze=layers.0.attention.span", "training.gradient_report=true"});
  GradientReport report(model.session.config, model.session.store);
  model.train(1);
  report.add(model.session.trainer.optimizer(), model.runtime.backend());
  const nlohmann::json said = report.take(model.runtime.backend());
  CHECK(said.at("tensors").size() == model.session.store.parameters().size() - 1);
  REQUIRE(said.at("spans").size() == 1);
  CHECK(said.at("spans").front().at("layer") == 1);
}

TEST_CASE("patterns that match nothing are refused with what is near, and so is a model that would not train") {
  const RunFolder folder;
  const auto refusal = [&](const std::string& patterns) {
    return message_of<UsageError>([&] { SmallModel(small_config(), folder.data(), {"training.freeze=" + patterns}); });
  };
  CHECK_THAT(refusal("layers.0.atention.query"),
             ContainsSubstring("got 'layers.0.atention.query', which matches none") &&
                 ContainsSubstring("near it: layers.0.attention.query, "));
  CHECK_THAT(refusal("layers.0.*,decoder*"),
             ContainsSubstring("'decoder*'") && ContainsSubstring("layers.1.*") && ContainsSubstring("position_keys"));
  CHECK_THAT(refusal("*"), ContainsSubstring("must leave something to train"));
  CHECK_THAT(refusal("a b"), ContainsSubstring("training.freeze must be a list of names in quotes, got 'a b'") &&
                                 ContainsSubstring("--freeze"));
  const RunConfig config = parse_run_config(small_config() + "freeze = [\"layers.0.*\", 'emb?dding.*']\n", "test");
  CHECK(config.training.freeze == std::vector<std::string>{"layers.0.*", "emb?dding.*"});
  CHECK(parse_run_config(to_toml(config), "again").training.freeze == config.training.freeze);
  CHECK(parse_run_config(small_config(), "test", {"training.freeze=[\"a\",\"layers.[01].*\"]"}).training.freeze ==
        std::vector<std::string>{"a", "layers.[01].*"});
  CHECK(parse_run_config(small_config(), "test", {"training.freeze=layers.[01]"}).training.freeze ==
        std::vector<std::string>{"layers.[01]"});
  for (const char* written : {"[ \"a\" ]", "[  'a',\"a\"]", "[ 'a' , a ]"})
    CHECK(parse_run_config(small_config(), "test", {text("training.freeze=", written)}).training.freeze.front() == "a");
  CHECK(parse_run_config(small_config(), "test", {"training.freeze=[ ]"}).training.freeze.empty());
  for (const char* written : {"[ \"a\"", "[ a ]", "[ \"a\", ]"})
    CHECK_THAT(refusal(written), ContainsSubstring("a list of"));
  CHECK_THROWS_AS(parse_run_config(small_config() + "freeze = \"layers.0.*\"\n", "test"), UsageError);
}

TEST_CASE("memory of a run counts what is frozen without gradients and state") {
  const RunFolder folder;
  SmallModel whole(small_memory_config(), folder.data()),
      frozen(small_memory_config(), folder.data(), {"training.freeze=layers.*"});
  for (SmallModel* const model : {&whole, &frozen}) {
    const std::unique_ptr<LanguageModel> made = make_model(model->session.config.model);
    ParameterStore store;
    collect(*made, store);
    freeze_parameters(store, model->session.config.training.freeze);
    CHECK(rank_memory(rank_setting(model->session.config), store, 1).front().in_store() ==
          static_cast<std::int64_t>(model->session.store.bytes_in_use()));
  }
  CHECK(frozen.session.store.bytes_in_use() < whole.session.store.bytes_in_use() / 2);
  CHECK_THAT(frozen.session.notes.front(), ContainsSubstring("are frozen (training.freeze)"));
}

/// Trains on so many ranks, stopped after `stop` steps if that is above 0.
void train(TrainingRunOptions options, int count, int stop = 0) {
  const auto asks = [stop] { return stop > 0 ? after_steps(stop) : never(); };
  if (count == 1) {
    run_training(options, asks());
    return;
  }
  run_ranks(count, [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    run_training(own, asks());
  });
}

TEST_CASE("a run with frozen parameters goes on bit for bit, on two ranks has the same bytes, and keeps its patterns") {
  const RunFolder folder;
  const std::vector<std::pair<std::string, std::vector<std::string>>> variants{
      {small_config(),
       {"training.freeze=layers.0.*", "training.weight_average=true", "training.validate_every=2", "schedule.rate=1e-9",
        "schedule.steps=16"}},
      {small_memory_config(), {"training.freeze=layers.0.memory.values.rows,layers.1.*", "training.split=2"}},
      {small_memory_config(), {"training.freeze=*.memory.*,embedding.*", "training.split=2", "optimizer.clip=0.1"}}};
  for (std::size_t i = 0; i < variants.size(); ++i) {
    CAPTURE(i);
    TrainingRunOptions one = run_options(folder, text("one", i));
    one.config = put_file(folder / text(i, ".toml"), variants[i].first);
    one.overrides = variants[i].second;
    train(one, 1);
    const std::string expected = newest_checkpoint(one);
    TrainingRunOptions two = one;
    two.out = folder / text("two", i);
    train(two, 2);
    CHECK(newest_checkpoint(two) == expected);
    TrainingRunOptions parts = one;
    parts.out = folder / text("parts", i);
    CHECK_THROWS_AS(train(parts, 1, 5), Interrupted);
    parts.resume = true;
    parts.overrides = {"training.freeze=embedding.weight"};
    CHECK_THAT(message_of<UsageError>([&] { train(parts, 1); }), ContainsSubstring("training.freeze: "));
    parts.overrides.assign(variants[i].second.begin() + 1, variants[i].second.end());  // as the file, without --freeze
    train(parts, 1);
    CHECK(newest_checkpoint(parts) == expected);
    const auto best = checkpoint_path(one.out, CheckpointKind::newest);
    Runtime runtime({}, 1);
    CHECK_NOTHROW(TrainedModel(best, CheckpointKind::newest, runtime));
  }
}

}  // namespace
}  // namespace engram::harness::freeze_test
