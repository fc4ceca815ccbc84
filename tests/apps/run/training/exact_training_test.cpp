/// Training in f64 against a plain loop, for every family of models and every update rule: the loop takes the gradients
/// of the project's backward pass, updates copies of the parameters by the definitions in tests/reference and puts them
/// back. After every step losses and parameters agree to 1e-12, which no number of the update that was rounded to f32
/// would allow.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/training/trainer.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/optimizers.hpp"
#include "tests/reference/table_optimizers.hpp"

namespace engram::harness::exact_training_test {
namespace {

using reference::Array64;

constexpr int kSteps = 20;

RunConfig config_of(ModelFamily family) {
  RunConfig config;
  config.model.family = family;
  config.model.all_attention = {
      .vocabulary = 7, .layers = 2, .width = 8, .heads = 2, .slots = 3, .max_span = 20, .ramp = 4, .span_init = 0.4};
  config.model.transformer_xl = {.vocabulary = 7, .layers = 2, .width = 8, .heads = 2, .inner = 12, .memory = 5};
  config.model.product_key = {.vocabulary = 7, .layers = 2, .width = 8, .heads = 2, .position_rows = 8};
  config.model.product_key.memories = {.count = 1, .subkeys = 4, .heads = 2, .selected = 3, .query_width = 4};
  config.model.recurrent = {.vocabulary = 7, .embedding_width = 5, .width = 9, .window = 3};
  config.training.batch = 4;
  config.training.block = 6;
  config.training.span_loss = family == ModelFamily::all_attention ? 0.001 : 0;
  // Rates that are no floats, neither at the end of the rise nor on the way.
  config.schedule.rate = 0.003;
  config.schedule.warmup = 6;
  config.schedule.steps = 100;
  return config;
}

data::Block block_of(int step) {
  reference::RandomArrays random(static_cast<std::uint64_t>(step) + 1);
  data::Block block;
  block.rows = 4;
  block.length = 6;
  block.scored_count = 24;
  block.zero_caches = step == 0;
  for (int i = 0; i < 24; ++i) {
    block.inputs.push_back(static_cast<std::int32_t>(random.below(7)));
    block.targets.push_back(static_cast<std::int32_t>(random.below(7)));
    block.scored.push_back(1);
  }
  return block;
}

/// A placed model in f64.
struct Placed {
  RunConfig config;
  Runtime runtime{{}, 1, 5};
  ParameterStore store;
  std::unique_ptr<LanguageModel> model;

  explicit Placed(const RunConfig& with) : config(with), model(make_model(config.model)) {
    collect(*model, store);
    store.place(runtime.backend(), DType::f64, 3);
    model->refresh(runtime.backend());
  }
  Array64 read(const Tensor& tensor) { return to_host(runtime.backend(), tensor); }
};

struct ProjectTraining : Placed {
  Trainer trainer{config, *model, store, runtime};
  using Placed::Placed;
};

class PlainTraining : public Placed {
 public:
  explicit PlainTraining(const RunConfig& with)
      : Placed(with), past_(model->training_past(runtime.backend(), runtime.memory(), 4, DType::f64)) {
    for (const auto& [name, parameter] : store.parameters()) {
      if (parameter->gradient_kind() == Gradient::none) continue;
      Kept& kept = kept_[name];
      kept.value = read(parameter->value());
      kept.first = kept.second = reference::zeros(kept.value.shape);
      kept.steps.resize(static_cast<std::size_t>(kept.value.axis(0)));
      kept.row_sum.resize(kept.steps.size());
    }
  }

  /// The loss of the block before the update.
  double step(const data::Block& block) {
    const double loss = differentiate(block);
    ++steps_;
    const double rate = reference::warmup_rate(config.schedule.rate, steps_, config.schedule.warmup);
    update_dense(rate);
    update_tables(rate);
    for (const auto& [name, kept] : kept_) std::ranges::copy(kept.value.data, store.find(name)->value().data<double>());
    model->refresh(runtime.backend());
    return loss;
  }

  const Array64& value(const std::string& name) const { return kept_.at(name).value; }
  /// Whether the parameter has had a gradient. One that is zero but for rounding, as of biases of keys under a softmax
  /// and of what batch norm follows, is divided by its own size, so that its parameter follows the rounding.
  bool has_gradient(const std::string& name) const { return kept_.at(name).largest_gradient > 1e-13; }

 private:
  struct Kept {
    Array64 value, gradient, first, second;
    reference::TableGradient rows;
    std::vector<std::int64_t> steps;  // of a table's rows
    std::vector<double> row_sum;
    double largest_gradient = 0;
  };

  double differentiate(const data::Block& block) {
    Step& step = runtime.step();
    step.begin({.step = static_cast<std::uint64_t>(steps_)});
    if (block.zero_caches)
      for (const auto& layer : past_) layer->reset();
    tokens_.write(tokens_of(block), 1, model->tokens().clusters(), runtime.backend(), runtime.memory(), DType::f64);
    for (const auto& layer : past_) state_past(*layer).settle(tokens_.remembered());
    store.zero_gradients(step);
    double loss = 0;
    {
      Tape tape(step);
      ModelTrace trace(step.objects());
      const TokenBatch batch = tokens_.piece(0);
      const Variable hidden = LanguageModel::scored(model->hidden(tape, batch, past_, &trace), batch);
      std::vector<Variable> losses;
      for (LossPart& part : model->tokens().losses(hidden, batch, 1.0 / static_cast<double>(block.scored_count))) {
        loss += read(part.loss.value()).data[0];
        losses.push_back(std::move(part.loss));
      }
      if (const Variable penalty = model->penalty(trace, config.training.span_loss, 1)) losses.push_back(penalty);
      tape.backward(losses);
    }
    for (auto& [name, kept] : kept_) read_gradient(*store.find(name), kept);
    store.clear_row_gradients();
    runtime.arena().end_step();
    return loss;
  }

  void read_gradient(const Parameter& parameter, Kept& kept) {
    if (parameter.gradient_kind() == Gradient::dense) {
      kept.gradient = read(parameter.gradient());
    } else {
      const std::int64_t rows = kept.value.axis(0), width = kept.value.axis(1);
      kept.rows = {reference::zeros({rows, width}), std::vector<bool>(static_cast<std::size_t>(rows), false)};
      for (const RowGradient::Part& part : parameter.row_gradient().parts) {
        std::vector<std::int64_t> ids;
        for (const double id : read(part.uses.ids).data) ids.push_back(static_cast<std::int64_t>(id));
        Array64 sources = read(part.uses.sources);
        sources.shape = {sources.count() / width, width};
        const reference::TableGradient more =
            reference::table_gradient(rows, ids, read(part.uses.weights).data, sources);
        for (std::size_t i = 0; i < more.sums.data.size(); ++i) kept.rows.sums.data[i] += more.sums.data[i];
        for (std::size_t row = 0; row < more.touched.size(); ++row)
          if (more.touched[row]) kept.rows.touched[row] = true;
      }
      kept.gradient = kept.rows.sums;
    }
    for (const double g : kept.gradient.data) kept.largest_gradient = std::max(kept.largest_gradient, std::abs(g));
  }

  /// Of tables or of all others: scaled together to the clip.
  void clip(bool tables, double limit) {
    std::vector<Array64> gradients;
    for (const auto& [name, kept] : kept_)
      if (is_table(name) == tables) gradients.push_back(kept.gradient);
    reference::clip_global(gradients, limit);
    auto clipped = gradients.begin();
    for (auto& [name, kept] : kept_)
      if (is_table(name) == tables) kept.gradient = *clipped++;
  }
  bool is_table(const std::string& name) const { return store.find(name)->gradient_kind() == Gradient::rows; }

  void update_dense(double rate_of_step) {
    const OptimizerOptions& options = config.optimizer;
    if (options.kind != OptimizerKind::adagrad) clip(false, options.clip);
    for (auto& [name, kept] : kept_) {
      if (is_table(name)) continue;
      const std::string& group = store.find(name)->group();
      const double rate = group == "spans" ? rate_of_step * options.span_rate_share : rate_of_step;
      if (options.kind == OptimizerKind::adagrad) {
        const bool of_gradient = options.clip_kind == ClipKind::per_tensor_gradient;
        reference::adagrad(kept.value, kept.gradient, kept.first,
                           {rate, options.clip, of_gradient ? reference::Clip::gradient : reference::Clip::rate});
      } else if (options.kind == OptimizerKind::adam) {
        const double decay = group == "undecayed" ? 0 : options.weight_decay;
        for (double& p : kept.value.data) p -= rate * decay * p;
        reference::adam(kept.value, kept.gradient, kept.first, kept.second, steps_,
                        {.rate = rate,
                         .beta1 = options.beta1,
                         .beta2 = options.beta2,
                         .epsilon = options.epsilon,
                         .corrected_root = options.epsilon_at == EpsilonAt::corrected});
      } else {
        reference::sgd(kept.value, kept.gradient, kept.first, rate, options.momentum);
      }
      if (group == "spans")
        for (double& span : kept.value.data) span = std::clamp(span, 0.0, 1.0);
    }
  }

  void update_tables(double rate_of_step) {
    const TableOptimizerOptions& options = config.optimizer.tables;
    clip(true, options.clip);
    const double rate = options.follows_schedule ? options.rate * rate_of_step / config.schedule.rate : options.rate;
    const reference::MovedRows moved = options.mode == TableMode::lazy ? reference::MovedRows::touched
                                       : options.mode == TableMode::row_step
                                           ? reference::MovedRows::touched_with_own_count
                                           : reference::MovedRows::all;
    for (auto& [name, kept] : kept_) {
      if (!is_table(name)) continue;
      kept.rows.sums = kept.gradient;
      if (options.kind == TableKind::row_adagrad)
        reference::table_adagrad(kept.value, kept.rows, kept.row_sum, rate, options.epsilon, options.weight_decay);
      else
        reference::table_adam(kept.value, kept.rows, kept.first, kept.second, kept.steps, steps_, moved,
                              {.rate = rate,
                               .beta1 = options.beta1,
                               .beta2 = options.beta2,
                               .epsilon = options.epsilon,
                               .weight_decay = options.weight_decay,
                               .corrected_root = options.epsilon_at == EpsilonAt::corrected});
    }
  }

  ModelPast past_;
  BlockTensors tokens_;
  std::map<std::string, Kept> kept_;
  std::int64_t steps_ = 0;
};

/// Parameters agree to 1e-12 of 1, or of a tensor's largest number where that is more.
void compare(ProjectTraining& project, const PlainTraining& plain, bool with_tables) {
  int compared = 0;
  for (const auto& [name, parameter] : project.store.parameters()) {
    const Gradient kind = parameter->gradient_kind();
    if (kind == Gradient::none || (kind == Gradient::rows && !with_tables) || !plain.has_gradient(name)) continue;
    const Array64 got = project.read(parameter->value());
    const Array64& wanted = plain.value(name);
    double largest = 1, worst = 0;
    for (const double number : wanted.data) largest = std::max(largest, std::abs(number));
    std::size_t apart = 0;
    for (std::size_t i = 0; i < wanted.data.size(); ++i) {
      const double difference = std::abs(got.data[i] - wanted.data[i]);
      worst = std::max(worst, difference);
      apart += !(difference <= 1e-12 * largest);  // a NaN is no agreement
    }
    CAPTURE(name, worst);
    CHECK(apart == 0);
    ++compared;
  }
  CHECK(compared >= 8);
}

void train_both(const RunConfig& config) {
  ProjectTraining project(config);
  PlainTraining plain(config);
  const bool late_rows = config.optimizer.tables.mode == TableMode::deferred;
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    const data::Block block = block_of(step);
    const double wanted = plain.step(block);
    CHECK(project.trainer.step(block).nll == Approx(wanted).epsilon(1e-12));
    compare(project, plain, !late_rows);
  }
  project.trainer.optimizer().bring_up_to_date(project.runtime.step());
  compare(project, plain, true);
}

OptimizerOptions rule(OptimizerKind kind, double clip) {
  OptimizerOptions options;
  options.kind = kind;
  options.clip = clip;
  options.clip_kind = kind == OptimizerKind::adagrad ? ClipKind::per_tensor_step : ClipKind::global;
  return options;
}

/// Clips are small enough to shrink steps.
std::vector<OptimizerOptions> rules() {
  std::vector<OptimizerOptions> all{rule(OptimizerKind::adagrad, 0.03), rule(OptimizerKind::adagrad, 0.03),
                                    rule(OptimizerKind::adam, 0.3), rule(OptimizerKind::adam, 0),
                                    rule(OptimizerKind::sgd, 0.3)};
  all[1].clip_kind = ClipKind::per_tensor_gradient;
  all[1].span_rate_share = 0.3;
  all[2].weight_decay = 0.1;
  all[3].epsilon = 1e-3;
  all[3].epsilon_at = EpsilonAt::uncorrected;
  all[4].momentum = 0.9;
  return all;
}

TEST_CASE("f64: every update rule trains every family as a plain loop in double does") {
  for (const ModelFamily family : kModelFamilies)
    for (const OptimizerOptions& options : rules()) {
      CAPTURE(std::string(name_of(family)), int(options.kind), options.clip, int(options.epsilon_at));
      RunConfig config = config_of(family);
      config.optimizer = options;
      train_both(config);
    }
}

TEST_CASE("f64: tables are trained as a plain loop in double does, in every mode") {
  const std::vector<TableOptimizerOptions> all{
      {.mode = TableMode::lazy, .rate = 0.003, .weight_decay = 0.1, .clip = 0.01},
      {.mode = TableMode::lazy, .rate = 0.003, .epsilon = 1e-3, .epsilon_at = EpsilonAt::corrected},
      {.mode = TableMode::row_step, .rate = 0.003, .epsilon = 1e-3, .epsilon_at = EpsilonAt::corrected},
      {.mode = TableMode::dense, .rate = 0.003, .follows_schedule = true},
      {.mode = TableMode::deferred, .rate = 0.003, .follows_schedule = true, .epsilon = 0, .weight_decay = 0.1},
      {.kind = TableKind::row_adagrad, .rate = 0.003, .follows_schedule = true, .clip = 0.01}};
  for (const TableOptimizerOptions& tables : all) {
    CAPTURE(int(tables.kind), int(tables.mode), int(tables.epsilon_at));
    RunConfig config = config_of(ModelFamily::product_key);
    config.optimizer = rule(OptimizerKind::adam, 0.3);
    config.optimizer.tables = tables;
    train_both(config);
  }
}

}  // namespace
}  // namespace engram::harness::exact_training_test
