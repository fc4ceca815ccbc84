/// Training and evaluation of the recurrent family through the program's own parts, over articles and over flat text:
/// what the model's tests (tests/nn/recurrent_test.cpp) cannot see of readers, checkpoints and epochs that end
/// raggedly.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/training/session.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/simulated_limits.hpp"

namespace engram::harness::recurrent_run_test {
namespace {

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

RunConfig config_for(const data::DataSet& data, const std::vector<std::string>& overrides) {
  return resolved_config(parse_run_config(recurrent_config(), "test", overrides), data);
}

/// A session over a data set of its own folder.
struct Session {
  data::DataSet data;
  RunConfig config;
  Runtime runtime;
  TrainingSession session;

  Session(const std::filesystem::path& from, const std::vector<std::string>& overrides, DType type = DType::f64,
          Device device = {})
      : data(data::DataSet::open(from)),
        config(config_for(data, overrides)),
        runtime(device, device.kind == DeviceKind::cpu ? 1 : 0, config.training.seed),
        session(config, data, runtime, type) {}
};

TEST_CASE("recurrent run: stopped and resumed it is bit-identical to one that is not", "[recurrent][night]") {
  const ArticleFolder folder(7);  // epochs of fewer than 50 blocks
  int number = 0;
  for (const std::vector<std::string>& kind : recurrent_kinds())
    for (const char* articles : {"data", "flat"}) {
      CAPTURE(kind, articles);
      const bool in_pieces = ++number % 2 == 0, has_layers = kind[0] == "model.layers=2";
      std::vector<std::string> keys = kind + (has_layers ? recurrent_dropout() : std::vector<std::string>{});
      if (in_pieces) keys = keys + std::vector<std::string>{"training.split=2", "model.carry=none"};
      TrainingRunOptions whole = recurrent_run(folder, text("whole", number), keys);
      whole.data = folder / articles;
      run_training(whole, never());
      for (const int steps : {25, 31}) {
        TrainingRunOptions parts = recurrent_run(folder, text("parts", number, ".", steps), keys);
        parts.data = folder / articles;
        CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
        parts.resume = true;
        run_training(parts, never());
        CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
        CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::best)) ==
              get_file(checkpoint_path(whole.out, CheckpointKind::best)));
      }
    }
}

TEST_CASE("recurrent run: the loss falls, over epochs that end raggedly", "[recurrent][night]") {
  const ArticleFolder folder;
  for (const std::vector<std::string>& kind : recurrent_kinds()) {
    CAPTURE(kind);
    Session run(folder.data(), kind + std::vector<std::string>{"schedule.steps=1200"}, DType::f32);
    double first = 0, last = 0;
    int ragged = 0;
    std::uint64_t epochs = 0;
    for (int step = 0; step < 1200; ++step) {
      const double nll = run.session.step().nll;
      (step < 20 ? first : last) += step < 20 || step >= 1180 ? nll : 0;
      const auto& state = run.session.reader->state();
      epochs = state.wraps;
      data::Block block;
      run.session.reader->next(block);
      ragged += block.scored_count < 48;
      run.session.reader->restore(state);
    }
    CHECK(epochs >= 2);
    CHECK(ragged >= 4);
    CHECK(last < 0.8 * first);
  }
}

TEST_CASE("recurrent run: a block with targets that do not count is the mean of those that do", "[recurrent]") {
  const ArticleFolder folder;
  for (const std::vector<std::string>& kind : recurrent_kinds()) {
    CAPTURE(kind);
    Session run(folder.data(), kind), other(folder.data(), kind + std::vector<std::string>{"training.split=2"});
    data::Block block;
    do {
      run.session.reader->next(block);
    } while (block.scored_count == 48);
    REQUIRE(block.scored_count > 0);
    block.zero_caches = true;  // neither session knows what came before
    const double nll = run.session.trainer.accumulate(block).nll;
    CHECK(other.session.trainer.accumulate(block).nll == Approx(nll).epsilon(1e-13));
    // What stands where nothing counts is nothing.
    data::Block changed = block;
    for (std::size_t i = 0; i < block.scored.size(); ++i)
      if (block.scored[i] == 0) {
        changed.inputs[i] = 3;
        changed.targets[i] = 4;
      }
    Session third(folder.data(), kind);
    CHECK(third.session.trainer.accumulate(changed).nll == nll);
    for (const auto& [name, parameter] : run.session.store.parameters()) {
      CAPTURE(name);
      const auto of = [&wanted = name](Session& session) {
        return to_host(session.runtime.backend(), session.session.store.find(wanted)->gradient()).data;
      };
      const std::vector<double> mine = of(run), in_pieces = of(other), of_changed = of(third);
      // Which words a cluster has decides in what order it sums.
      if (run.config.model.cutoffs().empty()) CHECK(of_changed == mine);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        CHECK(in_pieces[i] == Approx(mine[i]).epsilon(1e-9).margin(1e-14));
        CHECK(of_changed[i] == Approx(mine[i]).epsilon(1e-9).margin(1e-14));
      }
    }
    // By the plain definition: the mean over the targets that count of what evaluation says of each.
    double sum = 0;
    std::int64_t count = 0;
    ModelPast past = run.session.model->training_past(run.runtime.backend(), run.runtime.memory(), 4, DType::f64);
    struct OneBlock final : data::EvaluationPlan {
      data::Block block;
      bool done = false;
      void begin() override { done = false; }
      bool next(data::Block& to) override {
        to = block;
        return !std::exchange(done, true);
      }
      std::int64_t block_count() const override { return 1; }
      std::int64_t scored_count() const override { return block.scored_count; }
      std::int64_t longest_block() const override { return block.length; }
    } plan;
    plan.block = block;
    const Evaluation evaluation = evaluate(run.session.placed(), plan, past, {.found = [&](std::int64_t, double loss) {
                                             sum += loss;
                                             ++count;
                                           }});
    CHECK(count == block.scored_count);
    CHECK(evaluation.nll() == Approx(nll).epsilon(1e-12));
    CHECK(sum / static_cast<double>(count) == Approx(nll).epsilon(1e-12));
  }
}

TEST_CASE("recurrent run: pieces of a batch are the batch", "[recurrent]") {
  const ArticleFolder folder;
  for (const std::vector<std::string>& kind : recurrent_kinds()) {
    CAPTURE(kind);
    std::vector<std::vector<double>> nll;
    for (const char* split : {"1", "2", "4"}) {
      Session run(folder.data(), kind + std::vector<std::string>{text("training.split=", split)});
      nll.emplace_back();
      for (int step = 0; step < 50; ++step) nll.back().push_back(run.session.step().nll);
    }
    for (const auto& other : {nll[1], nll[2]})
      for (std::size_t i = 0; i < other.size(); ++i) CHECK(other[i] == Approx(nll[0][i]).epsilon(1e-8));
  }
}

TEST_CASE("recurrent run: a sum over time has gradients of so many means", "[recurrent]") {
  const ArticleFolder folder;
  for (const char* from : {"data", "flat"}) {
    Session mean(folder / from, {}), sum(folder / from, {"training.loss_scale=time_sum"});
    data::Block block;
    mean.session.reader->next(block);
    CHECK(sum.session.trainer.accumulate(block).nll ==
          Approx(mean.session.trainer.accumulate(block).nll).epsilon(1e-13));
    for (const auto& [name, parameter] : mean.session.store.parameters()) {
      CAPTURE(name);
      const auto of = [&wanted = name](Session& session) {
        return to_host(session.runtime.backend(), session.session.store.find(wanted)->gradient()).data;
      };
      const std::vector<double> once = of(mean), times = of(sum);
      for (std::size_t i = 0; i < once.size(); ++i)
        CHECK(times[i] == Approx(12 * once[i]).epsilon(1e-10).margin(1e-14));
    }
  }
}

TEST_CASE("recurrent run: the first step of Adam moves by the rate against the gradient, and clipping does not matter",
          "[recurrent]") {
  const ArticleFolder folder;
  Session run(folder.data(), {"schedule.rate=0.001", "optimizer.clip=5", "training.loss_scale=time_sum"}),
      reference(folder.data(), {"training.loss_scale=time_sum"});
  data::Block block;
  reference.session.reader->next(block);
  reference.session.trainer.accumulate(block);
  double squares = 0;
  std::int64_t moved = 0;
  std::map<std::string, std::vector<double>> before;
  for (const auto& [name, parameter] : run.session.store.parameters())
    before[name] = to_host(run.runtime.backend(), parameter->value()).data;
  run.session.step();
  for (const auto& [name, parameter] : run.session.store.parameters()) {
    CAPTURE(name);
    const std::vector<double> gradient =
        to_host(reference.runtime.backend(), reference.session.store.find(name)->gradient()).data;
    const std::vector<double> after = to_host(run.runtime.backend(), parameter->value()).data;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      squares += gradient[i] * gradient[i];
      if (gradient[i] == 0) CHECK(after[i] == before.at(name)[i]);
      if (std::abs(gradient[i]) < 1e-3) continue;
      ++moved;
      CHECK(after[i] - before.at(name)[i] == Approx(gradient[i] > 0 ? -0.001 : 0.001).epsilon(1e-4));
    }
  }
  CHECK(moved > 100);
  CHECK(std::sqrt(squares) > 1);
}

/// Loss by the target's place.
std::map<std::int64_t, double> losses_of(TrainedModel& model, const data::ArticleSplit& split,
                                         const SplitEvaluationOptions& with) {
  std::map<std::int64_t, double> found;
  evaluate_split(model, split, with,
                 {.found = [&](std::int64_t token, double nll) { CHECK(found.emplace(token, nll).second); }});
  return found;
}

void check_same(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [token, loss] : a) CHECK(b.at(token) == Approx(loss).epsilon(1e-10));
}

TEST_CASE("recurrent run: evaluation of articles depends neither on streams nor on blocks", "[recurrent]") {
  const ArticleFolder folder;
  int number = 0;
  for (const std::vector<std::string>& kind : recurrent_kinds()) {
    CAPTURE(kind);
    const TrainingRunOptions options =
        recurrent_run(folder, text("run", ++number), kind + std::vector<std::string>{"schedule.steps=9"});
    run_training(options, never());
    Runtime runtime({}, 1);
    TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
    const data::DataSet data = data::DataSet::open(folder.data());
    const data::ArticleSplit test(data, "test");
    const auto wanted = losses_of(trained, test, {});
    // Every token of every article is a target.
    CHECK(static_cast<std::int64_t>(wanted.size()) == test.tokens.size());
    for (const SplitEvaluationOptions& with : {SplitEvaluationOptions{.batch = 1, .block = 1000},
                                               {.batch = 1, .block = 1},
                                               {.batch = 3, .block = 7},
                                               {.batch = 9, .block = 5},
                                               {.exact = true},
                                               {.exact = true, .batch = 2, .block = 50}})
      check_same(losses_of(trained, test, with), wanted);
    // Each article alone, by generation: as many tokens after its start.
    const std::int64_t begin = test.starts[2];
    CHECK(TokenStream::window_of(trained.config()) == 0);
    TokenStream stream({trained.model(), runtime, DType::f64});
    std::vector<std::int32_t> context{test.start};
    for (std::int64_t i = 0; i < std::min<std::int64_t>(20, test.length(2)); ++i) {
      const std::span<const double> next = stream.append(context);
      CHECK(-next[static_cast<std::size_t>(test.tokens[begin + i])] == Approx(wanted.at(begin + i)).epsilon(1e-10));
      context = {test.tokens[begin + i]};
    }
    // Without carry blocks show, where readouts look back.
    ContextOptions context_options;
    context_options.carry = Carry::none;
    TrainedModel forgetful(options.out, CheckpointKind::newest, runtime, DType::f64,
                           [&](ModelOptions& model) { context_options.apply(model, "evaluate"); });
    const auto whole = losses_of(forgetful, test, {.block = 1000}), cut = losses_of(forgetful, test, {.block = 6});
    check_same(whole, wanted);
    double apart = 0;  // products of other sizes may round otherwise
    for (const auto& [token, loss] : whole) apart = std::max(apart, std::abs(cut.at(token) - loss));
    const bool looks_back = std::ranges::find(kind, "model.readout=identity") == kind.end();
    CHECK((apart < 1e-10) == !looks_back);
  }
}

TEST_CASE("recurrent run: flat text is one text, in every way of evaluation", "[recurrent]") {
  const ArticleFolder folder;
  TrainingRunOptions options = recurrent_run(folder, "run", {"schedule.steps=9"});
  options.data = folder.flat();
  run_training(options, never());
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
  const data::DataSet data = data::DataSet::open(folder.flat());
  const data::ArticleSplit test(data, "test");
  CHECK(test.articles() == 0);
  const auto exact = losses_of(trained, test, {.exact = true});
  CHECK(static_cast<std::int64_t>(exact.size()) == test.tokens.size() - 1);
  check_same(losses_of(trained, test, {.exact = true, .block = 7}), exact);
  check_same(losses_of(trained, test, {.batch = 1, .block = 5}), exact);
  TokenStream stream({trained.model(), runtime, DType::f64});
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::array<std::int32_t, 1> token{test.tokens[i]};
    const std::span<const double> next = stream.append(token);
    CHECK(exact.at(i + 1) == Approx(-next[static_cast<std::size_t>(test.tokens[i + 1])]).epsilon(1e-10));
  }
  const auto usual = losses_of(trained, test, {});
  CHECK(usual.size() > 100);
  const auto sliding = losses_of(trained, test, {.window = 12});
  CHECK(sliding.size() == exact.size());
  CHECK(sliding.at(3) == Approx(exact.at(3)).epsilon(1e-10));
  const auto apart = losses_of(trained, test, {.window = 12, .apart = true});
  CHECK(apart.at(3) == Approx(exact.at(3)).epsilon(1e-10));
}

TEST_CASE("recurrent run: fifty steps on every device follow the CPU, captured steps too", "[recurrent]") {
  const ArticleFolder folder(7);
  for (const std::vector<std::string>& kind : recurrent_kinds()) {
    CAPTURE(kind);
    Session reference(folder.data(), kind, DType::f32);
    std::vector<double> expected;
    for (int i = 0; i < 50; ++i) expected.push_back(reference.session.step().nll);
    CHECK(reference.session.reader->state().wraps > 0);
    const double validated = reference.session.validate().nll();
    for (const Device device : other_devices()) {
      Session run(folder.data(), kind, DType::f32, device);
      for (const double nll : expected) CHECK(run.session.step().nll == Approx(nll).epsilon(1e-3));
      CHECK(run.session.trainer.replayed() > 0);
      CHECK(run.session.validate().nll() == Approx(validated).epsilon(1e-3));
    }
  }
}

TEST_CASE("recurrent run: a step without memory leaves everything as it was", "[recurrent]") {
  if (!has_simulated_device()) return;
  const ArticleFolder folder(7);
  for (const std::vector<std::string>& kind : recurrent_kinds())
    for (const int steps : {0, 1, 4}) {
      CAPTURE(kind, steps);
      const Device device = parse_device("simulated");
      Session run(folder.data(), kind, DType::f32, device), undisturbed(folder.data(), kind, DType::f32, device);
      for (int i = 0; i < steps; ++i) CHECK(run.session.step().nll == undisturbed.session.step().nll);
      std::size_t& limit = simulated::memory_limit_of(run.runtime.backend());
      // Wherever in the step it ends. Steps that the device repeats take no memory, the first ones do.
      int failed = 0;
      const double wanted = undisturbed.session.step().nll;
      for (std::size_t more = 0;; more += 2048) {
        limit = run.runtime.backend().reserved_bytes() + more;
        try {
          const double nll = run.session.step().nll;
          CHECK(nll == wanted);
          break;
        } catch (const OutOfMemory&) {
          ++failed;
        }
      }
      if (steps < 2) CHECK(failed > (steps == 0 ? 2 : 0));
      limit = SIZE_MAX;
      for (int i = 0; i < 4; ++i) CHECK(run.session.step().nll == undisturbed.session.step().nll);
    }
}

}  // namespace
}  // namespace engram::harness::recurrent_run_test
