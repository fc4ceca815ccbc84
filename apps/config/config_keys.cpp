#include "apps/run/config/config_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "apps/run/config/section_keys.hpp"

namespace engram {
namespace {

/// Of a small model and a short run, of every family: the width is even and a multiple of 3.
std::string_view example_of(ModelFamily family, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"model.layers", "2"},  {"model.width", "120"},    {"model.heads", "4"},      {"model.slots", "64"},
      {"model.inner", "480"}, {"model.max_span", "256"}, {"schedule.rate", "0.05"}, {"schedule.steps", "1000"}};
  if (key == "model.inner" && family != ModelFamily::transformer_xl) return {};  // the others have a default
  for (const auto& [name, example] : kExamples)
    if (name == key) return example;
  return {};
}

std::vector<ConfigKey> make_keys(ModelFamily family) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  std::vector<ConfigKey> keys;
  keys.push_back(make_key(
      "model", [](auto& config) -> auto& { return config.model; }, &ModelOptions::family, "family", kKeep,
      "what kind of model; decides which other keys [model] has"));
  switch (family) {
    case ModelFamily::all_attention:
      add_all_attention_keys(keys);
      break;
    case ModelFamily::transformer_xl:
      add_transformer_xl_keys(keys);
      break;
    case ModelFamily::product_key:
      add_product_key_keys(keys);
      break;
    case ModelFamily::recurrent:
      add_recurrent_keys(keys);
      break;
  }
  if (family != ModelFamily::recurrent) add_product_key_memory_keys(keys);

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

  const auto schedule = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(make_key(
        "schedule", [](auto& config) -> auto& { return config.schedule; }, member, name, kChange, meaning));
  };
  schedule(&Schedule::rate, "rate", "highest learning rate");
  schedule(&Schedule::warmup, "warmup", "steps over which the rate rises linearly");
  schedule(&Schedule::decay, "decay", "how the rate falls after the warm-up");
  schedule(&Schedule::clock, "clock", "time of an update");
  schedule(&Schedule::final_share, "final_share", "share of the rate that a decay ends at");
  schedule(&Schedule::steps, "steps", "steps of the run before fine-tuning");
  schedule(&Schedule::finetune, "finetune", "begins after schedule.steps, or on a plateau of validation");
  schedule(&Schedule::finetune_share, "finetune_share", "share of the rate in fine-tuning");
  schedule(&Schedule::plateau_validations, "plateau_validations", "finetune plateau: validations without improvement");
  schedule(&Schedule::plateau_factor, "plateau_factor", "decay plateau: what the rate is multiplied by");
  schedule(&Schedule::plateau_patience, "plateau_patience", "decay plateau: validations that may fail before that");
  schedule(&Schedule::plateau_margin, "plateau_margin", "finetune plateau: bits per token, less is no improvement");

  const auto training = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(make_key(
        "training", [](auto& config) -> auto& { return config.training; }, member, name, kChange, meaning));
  };
  training(&TrainingOptions::batch, "batch", "streams of text read side by side");
  training(&TrainingOptions::block, "block", "tokens of each stream per step");
  if (family == ModelFamily::transformer_xl) {
    training(&TrainingOptions::extension, "extension", "tokens read again before each block, without a loss");
    training(&TrainingOptions::drawn_lengths, "drawn_lengths", "lengths of blocks vary around block");
    training(&TrainingOptions::latest_half, "latest_half", "only the latest half of a block has a loss");
  }
  if (family == ModelFamily::product_key)
    training(&TrainingOptions::shuffled_windows, "shuffled_windows",
             "blocks are drawn from all of the text in a random order, not read along streams");
  if (family == ModelFamily::recurrent)
    training(&TrainingOptions::loss_scale, "loss_scale",
             "gradients are of the mean over a block, or of its sum over time");
  training(&TrainingOptions::split, "split", "pieces that a batch is computed in, to save memory; must divide batch");
  training(&TrainingOptions::products, "products", "operands of matrix products; all else stays f32");
  training(&TrainingOptions::activations, "activations",
           "what is stored between parameters and losses (docs/numerics.md)");
  if (family == ModelFamily::all_attention)
    training(&TrainingOptions::span_loss, "span_loss", "weight of the mean span in the loss, per position");
  training(&TrainingOptions::finetune_steps, "finetune_steps", "steps of fine-tuning, after the others");
  training(&TrainingOptions::report_every, "report_every", "steps between reports");
  training(&TrainingOptions::validate_every, "validate_every", "steps between short validations");
  training(&TrainingOptions::validate_blocks, "validate_blocks", "blocks of a short validation at most");
  training(&TrainingOptions::checkpoint_every, "checkpoint_every", "steps between checkpoints");
  training(&TrainingOptions::weight_average, "weight_average",
           "once validation stops improving, evaluate with the mean of the weights since then");
  training(&TrainingOptions::gradient_report, "gradient_report",
           "report every tensor's gradient, for engram gradients");
  training(&TrainingOptions::seed, "seed", "of weights, dropout and reading");
  for (ConfigKey& key : keys) key.example = example_of(family, key.full_name());
  return keys;
}

}  // namespace

bool ConfigKey::is_required(const RunConfig& config) const {
  if (section == "model" && config.model.family == ModelFamily::all_attention) {
    const MemoryMode mode = config.model.all_attention.memory_mode;
    if (name == "slots") return has_slots(mode);
    if (name == "inner") return has_second_sublayer(mode);
  }
  return !example.empty();
}

std::span<const ConfigKey> config_keys(ModelFamily family) {
  static const std::array keys{make_keys(kModelFamilies[0]), make_keys(kModelFamilies[1]), make_keys(kModelFamilies[2]),
                               make_keys(kModelFamilies[3])};
  return keys[static_cast<std::size_t>(family)];
}

const ConfigKey* find_config_key(ModelFamily family, std::string_view section, std::string_view name) {
  for (const ConfigKey& candidate : config_keys(family))
    if (candidate.section == section && candidate.name == name) return &candidate;
  return nullptr;
}

const ConfigKey& nearest_config_key(ModelFamily family, std::string_view section, std::string_view name) {
  // A key in the wrong section costs as much as one wrong character.
  const auto cost = [&](const ConfigKey& candidate) {
    return 2 * edit_distance(name, candidate.name) +
           std::min<std::size_t>(2, edit_distance(section, candidate.section));
  };
  const auto keys = config_keys(family);
  return *std::ranges::min_element(keys, {}, cost);
}

std::string choices_of(const ConfigKey& key) {
  constexpr std::string_view kOneOf = "one of ";
  if (!key.rule.starts_with(kOneOf)) return {};
  std::string choices;
  for (const char byte : key.rule.substr(kOneOf.size()))
    choices += byte == ',' ? " |" : byte == '"' ? "" : std::string(1, byte);
  return choices;
}

std::string config_help(ModelFamily family) {
  RunConfig defaults;
  defaults.model.family = family;
  std::string help =
      "# Keys of a configuration, in TOML, with their defaults (--set section.key=value changes one). What is marked\n"
      "# as required has none: with the values here this text is the configuration of a small model and a short run.\n";
  std::string_view section;
  for (const ConfigKey& entry : config_keys(family)) {
    if (entry.section != section) help += fmt::format("\n[{}]\n", entry.section);
    section = entry.section;
    const std::string value = entry.example.empty() ? entry.write(defaults) : std::string(entry.example);
    // Its default is another one for every kind: written down it would be refused with most of them.
    const bool follows = entry.full_name() == "optimizer.clip_kind";
    help += fmt::format("{:<36}# {}{}", fmt::format("{}{} = {}", follows ? "# " : "", entry.name, value),
                        entry.example.empty() ? "" : "required: ", entry.meaning);
    if (const std::string choices = choices_of(entry); !choices.empty()) help += ": " + choices;
    help += '\n';
  }
  return help;
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // Distances of the beginnings of `from`, the latest three, to all beginnings of `to`.
  std::vector<std::size_t> before, last, row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      row[j + 1] = std::min({last[j] + (from[i] == to[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

bool is_near(std::string_view given, std::string_view known) {
  return edit_distance(given, known) <= std::max<std::size_t>(1, given.size() / 3);
}

}  // namespace engram
