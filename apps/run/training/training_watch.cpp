#include "apps/run/training/training_watch.hpp"

#include "apps/run/model/checkpoint_format.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram {
namespace {

using nlohmann::json;

Watcher watch_divergence(DivergenceWatch& divergence) {
  Watcher watcher;
  watcher.step = [&](const StepLosses& losses) { divergence.add(losses.nll); };
  watcher.save = [&](json& state) { state["divergence"] = divergence.state(); };
  watcher.restore = [&](const json& state, const Continuation& how) {
    if (how.same_data) divergence.restore(state.at("divergence"));
  };
  return watcher;
}

Watcher watch_interval(TrainingWatch::Interval& interval) {
  Watcher watcher;
  watcher.step = [&](const StepLosses& losses) {
    interval.nll_sum += losses.nll;
    ++interval.steps;
  };
  watcher.save = [&](json& state) { state["interval"] = {{"nll_sum", interval.nll_sum}, {"steps", interval.steps}}; };
  watcher.restore = [&](const json& state, const Continuation&) {
    state.at("interval").at("nll_sum").get_to(interval.nll_sum);
    interval.steps = integer_of<std::int64_t>(state.at("interval").at("steps"));
  };
  return watcher;
}

/// What evaluation found of spans that are computed for every query.
Watcher watch_spans(AllAttentionModel& model) {
  Watcher watcher;
  watcher.save = [&](json& state) {
    for (std::int64_t layer = 0; layer < model.options().layers; ++layer)
      state[kSpanMeansKey].push_back(model.span(layer).zeta());
  };
  watcher.restore = [&](const json& state, const Continuation&) {
    if (!state.contains(kSpanMeansKey)) return;
    for (std::int64_t layer = 0; layer < model.options().layers; ++layer)
      model.span(layer).take_means(
          state.at(kSpanMeansKey).at(static_cast<std::size_t>(layer)).get<std::vector<double>>());
  };
  return watcher;
}

/// Begins the fine-tuning.
Watcher watch_plateau(PlateauWatch& plateau, const Schedule& schedule, Trainer& trainer) {
  Watcher watcher;
  watcher.validation = [&](const Evaluation& result) {
    if (trainer.steps() >= trainer.finetune_after()) return;
    plateau.add(result.bits());
    if (plateau.reached()) trainer.finetune_after(trainer.steps());
  };
  watcher.save = [&](json& state) {
    state["plateau"] = plateau.state();
    if (trainer.finetune_after() != schedule.steps) state[kFinetuneKey] = trainer.finetune_after();
  };
  watcher.restore = [&](const json& state, const Continuation& how) {
    if (how.same_data && state.contains("plateau")) plateau.restore(state.at("plateau"));
    if (state.contains(kFinetuneKey)) trainer.finetune_after(integer_of<std::int64_t>(state.at(kFinetuneKey)));
  };
  return watcher;
}

/// Lowers the rate.
Watcher watch_plateau_decay(const Schedule& schedule, Trainer& trainer) {
  Watcher watcher;
  watcher.validation = [&](const Evaluation& result) {
    if (trainer.steps() >= schedule.warmup) trainer.plateau_decay().add(result.nll());
  };
  watcher.save = [&](json& state) { state["plateau_decay"] = trainer.plateau_decay().state(); };
  watcher.restore = [&](const json& state, const Continuation& how) {
    if (!state.contains("plateau_decay")) return;
    const auto saved = state.at("plateau_decay").get<std::vector<double>>();
    // The rate stays where it was.
    trainer.plateau_decay().restore(how.same_data || saved.empty() ? saved : std::vector<double>{saved[0], 0});
  };
  return watcher;
}

/// Begins the mean of the weights. `wanted`: whether the configuration has one.
Watcher watch_averaging(WeightAverage& average, AveragingTrigger& trigger, const bool& wanted, Step& step) {
  Watcher watcher;
  watcher.step = [&](const StepLosses&) {
    if (average.started()) average.add(step);
  };
  watcher.validation = [&](const Evaluation& result) {
    if (!wanted) return;
    trigger.add(result.nll());
    if (trigger.reached() && !average.started()) average.start(step);
  };
  watcher.save = [&](json& state) {
    if (!wanted) return;
    state[kAverageKey] = {
        {"begun", average.started()}, {"updates", average.updates()}, {"validations", trigger.state()}};
  };
  watcher.restore = [&](const json& state, const Continuation& how) {
    if (!how.same_data || !state.contains(kAverageKey)) return;
    const json& saved = state.at(kAverageKey);
    trigger.restore(saved.at("validations").get<std::vector<double>>());
    if (!saved.at("begun").get<bool>()) return;
    const auto updates = integer_of<std::int64_t>(saved.at("updates"));
    if (how.resized) {
      how.notes.push_back("the mean of the weights begins anew, because of another max_span");
    } else if (wanted) {
      average.start(step);
      average.restore(updates);
    }
  };
  return watcher;
}

Watcher watch_best(std::optional<TrainingWatch::Best>& best, const DivergenceWatch& divergence,
                   const Trainer& trainer) {
  Watcher watcher;
  watcher.validation = [&](const Evaluation& result) {
    if (!divergence.is_hopeless(result.nll()) && (!best || result.nll() < best->nll))
      best = TrainingWatch::Best{result.nll(), trainer.steps()};
  };
  watcher.save = [&](json& state) {
    if (best) state["best"] = {{"nll", best->nll}, {"step", best->step}};
  };
  watcher.restore = [&](const json& state, const Continuation& how) {
    if (how.same_data && state.contains("best"))
      best = TrainingWatch::Best{state.at("best").at("nll"), integer_of<std::int64_t>(state.at("best").at("step"))};
  };
  return watcher;
}

}  // namespace

TrainingWatch::TrainingWatch(const RunConfig& config, const PlacedModel& placed, ParameterStore& store,
                             Trainer& trainer)
    : divergence(config.model.vocabulary()),
      average(store),
      plateau_(config.schedule.plateau_validations, config.schedule.plateau_margin),
      watchers_{watch_divergence(divergence), watch_interval(interval)} {
  const Schedule& schedule = config.schedule;
  if (AllAttentionModel* const model = all_attention_of(placed.model);
      model != nullptr && model->options().span == SpanKind::dynamic)
    watchers_.push_back(watch_spans(*model));
  if (schedule.finetune == Schedule::Finetune::plateau) watchers_.push_back(watch_plateau(plateau_, schedule, trainer));
  if (schedule.decay == Schedule::Decay::plateau) watchers_.push_back(watch_plateau_decay(schedule, trainer));
  // Also of a run that has no mean any more, which says so.
  watchers_.push_back(watch_averaging(average, averaging_, config.training.weight_average, placed.runtime.step()));
  // Last, as only a validation that all others have come through can be the best.
  watchers_.push_back(watch_best(best, divergence, trainer));
}

void TrainingWatch::step(const StepLosses& losses) {
  for (const Watcher& watcher : watchers_)
    if (watcher.step) watcher.step(losses);
}

void TrainingWatch::validation(const Evaluation& result) {
  for (const Watcher& watcher : watchers_)
    if (watcher.validation) watcher.validation(result);
}

void TrainingWatch::save(json& state) const {
  for (const Watcher& watcher : watchers_) watcher.save(state);
}

void TrainingWatch::restore(const json& state, const Continuation& how) {
  for (const Watcher& watcher : watchers_) watcher.restore(state, how);
}

}  // namespace engram
