#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_optimizer_keys(std::vector<ConfigKey>& keys, ModelFamily family) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto optimizer = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "optimizer", [](auto& config) -> auto& { return config.optimizer; }, member, name, on_resume, meaning));
  };
  optimizer(&OptimizerOptions::kind, "kind", kKeep, "update rule");
  optimizer(&OptimizerOptions::clip, "clip", kChange, "largest norm of a gradient; 0: not clipped");
  optimizer(&OptimizerOptions::clip_kind, "clip_kind", kChange,
            "what is shrunk, by default a tensor's step (adagrad, or its gradient) or all gradients (adam, sgd)");
  optimizer(&OptimizerOptions::beta1, "beta1", kChange, "adam: decay of the first moment per step");
  optimizer(&OptimizerOptions::beta2, "beta2", kChange, "adam: decay of the second moment per step");
  optimizer(&OptimizerOptions::epsilon, "epsilon", kChange, "adam: added to the root of the second moment");
  optimizer(&OptimizerOptions::epsilon_at, "epsilon_at", kChange,
            "adam: the divisor is sqrt(v / (1 - beta2^t)) + epsilon, or (sqrt(v) + epsilon) / sqrt(1 - beta2^t)");
  optimizer(&OptimizerOptions::momentum, "momentum", kChange, "sgd: share of the last step that is kept");
  optimizer(&OptimizerOptions::nesterov, "nesterov", kChange,
            "sgd: Nesterov's momentum, which adds momentum times the new velocity to the gradient");
  optimizer(&OptimizerOptions::weight_decay, "weight_decay", kChange, "adam: decoupled decay, times the rate per step");
  if (family == ModelFamily::all_attention)
    optimizer(&OptimizerOptions::span_rate_share, "span_rate_share", kChange,
              "rate of the spans, as a share of the rate");
  const auto table = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "optimizer", [](auto& config) -> auto& { return config.optimizer.tables; }, member, name, on_resume, meaning));
  };
  table(&TableOptimizerOptions::kind, "table_kind", kKeep, "update rule of tables with gradients of rows");
  table(&TableOptimizerOptions::mode, "table_mode", kKeep, "tables: which rows a step of adam moves");
  table(&TableOptimizerOptions::rate, "table_rate", kChange, "tables: learning rate");
  table(&TableOptimizerOptions::follows_schedule, "table_follows_schedule", kChange,
        "tables: the rate falls and rises as schedule.rate does");
  table(&TableOptimizerOptions::beta1, "table_beta1", kChange, "tables, adam: decay of the first moment per step");
  table(&TableOptimizerOptions::beta2, "table_beta2", kChange, "tables, adam: decay of the second moment per step");
  table(&TableOptimizerOptions::epsilon, "table_epsilon", kChange, "tables: added to the root");
  table(&TableOptimizerOptions::epsilon_at, "table_epsilon_at", kChange, "tables, adam: as epsilon_at");
  table(&TableOptimizerOptions::weight_decay, "table_weight_decay", kChange,
        "tables: decoupled decay of the rows that move, times the rate per step");
  table(&TableOptimizerOptions::clip, "table_clip", kChange,
        "tables: largest norm of the gradients of all of them; 0: not clipped");
  table(&TableOptimizerOptions::last_use, "table_last_use", kKeep,
        "tables: keep the step that used a row last, for `engram memory`");
}

}  // namespace engram
