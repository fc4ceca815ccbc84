#include "apps/run/config/config_review.hpp"

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_values.hpp"
#include "core/error.hpp"

namespace engram {

namespace {

void warn_of_model(const AllAttentionOptions& model, const RunConfig& config, std::vector<std::string>& warnings) {
  if (model.span != SpanKind::fixed && model.max_span < model.ramp)
    warnings.push_back(text("model.max_span ", model.max_span, " is below model.ramp ", model.ramp,
                            ": the window ends before the soft edge does, and nothing is ever trimmed"));
  if (model.memory_mode == MemoryMode::none)
    warnings.push_back(
        "model.memory_mode none has neither persistent slots nor a feed-forward sublayer: the paper's ablation N = 0");
  if (config.training.span_loss > 0 && model.span == SpanKind::fixed)
    warnings.push_back("training.span_loss has no effect, because model.span is fixed");
  if (model.cutoffs.empty() && !(model.tie_tables && model.tie_projections))
    warnings.push_back(
        "model.tie_tables and model.tie_projections have no effect without model.cutoffs: plain tables are never "
        "tied");
}

void warn_of_model(const TransformerXlOptions& model, const RunConfig&, std::vector<std::string>& warnings) {
  const TransformerXlOptions usual;
  const auto without_effect = [&](bool changed, std::string_view key, std::string_view reason) {
    if (changed) warnings.push_back(text("model.", key, " has no effect ", reason));
  };
  without_effect(model.shaw_terms != usual.shaw_terms && model.positions != PositionKind::shaw, "shaw_terms",
                 "unless model.positions is shaw");
  without_effect(!model.tie_position_biases && model.positions != PositionKind::relative, "tie_position_biases",
                 "unless model.positions is relative");
  without_effect(model.memory_start != usual.memory_start && model.memory == 0, "memory_start", "without model.memory");
  without_effect(model.cutoffs.empty() && model.divisor != usual.divisor, "divisor", "without model.cutoffs");
  without_effect(model.cutoffs.empty() && model.cluster_order != usual.cluster_order, "cluster_order",
                 "without model.cutoffs");
  without_effect(!model.project_same_width && (model.cutoffs.empty() || model.divisor == 1), "project_same_width",
                 "without model.cutoffs and a model.divisor above 1");
  const bool uniform = model.init == WeightStart::uniform;
  without_effect(!uniform && model.init_range != usual.init_range, "init_range", "unless model.init is uniform");
  without_effect(
      uniform && model.embedding_init != EmbeddingStart::normal && model.init_deviation != usual.init_deviation,
      "init_deviation", "unless model.init or model.embedding_init is normal");
  without_effect(
      model.embedding_init != EmbeddingStart::uniform && model.embedding_init_range != usual.embedding_init_range,
      "embedding_init_range", "unless model.embedding_init is uniform");
}

void warn_of_model(const ProductKeyTransformerOptions&, const RunConfig&, std::vector<std::string>&) {}

void warn_of_model(const RecurrentOptions& model, const RunConfig&, std::vector<std::string>& warnings) {
  const RecurrentOptions usual;
  const auto without_effect = [&](bool changed, std::string_view key, std::string_view reason) {
    if (changed) warnings.push_back(text("model.", key, " has no effect ", reason));
  };
  without_effect(model.readout != ReadoutKind::n_gram && model.parts != usual.parts, "parts",
                 "unless model.readout is n_gram");
  without_effect(model.layers == 1 && model.inner_width != usual.inner_width, "inner_width", "with one layer");
  without_effect(model.layers == 1 && model.layer_dropout > 0, "layer_dropout", "with one layer");
  const bool quasi = model.encoder == RecurrentCell::qrnn;
  without_effect(!quasi && model.taps != usual.taps, "taps", "unless model.encoder is qrnn");
  without_effect((!quasi || model.layers == 1) && model.inner_taps != usual.inner_taps, "inner_taps",
                 quasi ? "with one layer" : "unless model.encoder is qrnn");
  without_effect(model.cutoffs.empty() && model.divisor != usual.divisor, "divisor", "without model.cutoffs");
  without_effect(model.dropout_over_time && model.input_dropout + model.layer_dropout + model.output_dropout == 0,
                 "dropout_over_time", "without model.input_dropout, model.layer_dropout or model.output_dropout");
}

/// Of the kinds of optimisers that they are not for, and of plateaus that there are none of.
void warn_of(const OptimizerOptions& optimizer, const Schedule& schedule, std::vector<std::string>& warnings) {
  const OptimizerOptions usual;
  const Schedule usual_schedule;
  const auto without_effect = [&](bool changed, std::string_view key, std::string_view reason) {
    if (changed) warnings.push_back(text(key, " has no effect ", reason));
  };
  const std::string with = text("with optimizer.kind ", name_of(optimizer.kind));
  if (optimizer.kind != OptimizerKind::adam) {
    without_effect(optimizer.beta1 != usual.beta1, "optimizer.beta1", with);
    without_effect(optimizer.beta2 != usual.beta2, "optimizer.beta2", with);
    without_effect(optimizer.epsilon != usual.epsilon, "optimizer.epsilon", with);
    without_effect(optimizer.weight_decay != usual.weight_decay, "optimizer.weight_decay", with);
  }
  if (optimizer.kind != OptimizerKind::sgd) {
    without_effect(optimizer.momentum != usual.momentum, "optimizer.momentum", with);
    without_effect(optimizer.nesterov, "optimizer.nesterov", with);
  }
  without_effect(schedule.final_share != usual_schedule.final_share &&
                     (schedule.decay == Schedule::Decay::none || schedule.decay == Schedule::Decay::inverse_root),
                 "schedule.final_share", text("with schedule.decay ", name_of(schedule.decay)));
  if (schedule.decay != Schedule::Decay::plateau) {
    const std::string_view reason = "unless schedule.decay is plateau";
    without_effect(schedule.plateau_factor != usual_schedule.plateau_factor, "schedule.plateau_factor", reason);
    without_effect(schedule.plateau_patience != usual_schedule.plateau_patience, "schedule.plateau_patience", reason);
  }
  if (schedule.finetune != Schedule::Finetune::plateau) {
    const std::string_view reason = "unless schedule.finetune is plateau";
    without_effect(schedule.plateau_validations != usual_schedule.plateau_validations, "schedule.plateau_validations",
                   reason);
    without_effect(schedule.plateau_margin != usual_schedule.plateau_margin, "schedule.plateau_margin", reason);
  }
}

/// Of product-key memories and tables.
void warn_of_memories(const RunConfig& config, const ProductKeyOptions& memories, std::vector<std::string>& warnings) {
  if (memories.any()) {
    if (memories.selected == 1)
      warnings.push_back("product_key.selected 1: one slot has all the weight, so nothing trains keys and queries");
    return;
  }
  const RunConfig usual = [&] {
    RunConfig made;
    made.model.family = config.model.family;
    return made;
  }();
  for (const ConfigKey& key : config_keys(config.model.family))
    if ((key.section == "product_key" || key.name.starts_with("table_")) && key.write(config) != key.write(usual))
      warnings.push_back(text(key.full_name(), " has no effect without product-key memories (product_key.count)"));
}

}  // namespace

std::vector<std::string> config_warnings(const RunConfig& config) {
  std::vector<std::string> warnings;
  with_own_options(config.model, [&](const auto& own) { warn_of_model(own, config, warnings); });
  warn_of(config.optimizer, config.schedule, warnings);
  const bool learns_spans =
      config.model.family == ModelFamily::all_attention && config.model.all_attention.span == SpanKind::adaptive;
  if (config.optimizer.span_rate_share != OptimizerOptions().span_rate_share && !learns_spans)
    warnings.push_back("optimizer.span_rate_share has no effect unless model.span is adaptive");
  warn_of_memories(config, config.model.memories(), warnings);
  if (config.schedule.warmup > config.schedule.steps)
    warnings.push_back(text("schedule.warmup ", config.schedule.warmup, " is longer than the run of ",
                            config.schedule.steps, " steps: the full rate is never reached"));
  if (!config.training.sample_prompt.empty() && config.training.sample_every == 0)
    warnings.push_back("training.sample_prompt has no effect without training.sample_every");
  return warnings;
}

std::vector<ConfigDifference> config_differences(const RunConfig& before, const RunConfig& after) {
  if (before.model.family != after.model.family)
    return {
        {"model.family", std::string(name_of(before.model.family)), std::string(name_of(after.model.family)), true}};
  std::vector<ConfigDifference> differences;
  for (const ConfigKey& key : config_keys(after.model.family)) {
    std::string old_value = key.write(before), new_value = key.write(after);
    if (old_value != new_value)
      differences.push_back(
          {key.full_name(), std::move(old_value), std::move(new_value), key.on_resume == ConfigKey::OnResume::keep});
  }
  return differences;
}

}  // namespace engram
