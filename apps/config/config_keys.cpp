#include "apps/config/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "apps/config/config_values.hpp"

namespace engram {
namespace {

template <class Part, class T>
ConfigKey key(std::string_view section, Part RunConfig::*part, T Part::*member, std::string_view name,
              ConfigKey::OnResume on_resume, std::string_view meaning) {
  return {
      .section = section,
      .name = name,
      .meaning = meaning,
      .on_resume = on_resume,
      .rule = value_rule<T>(),
      .is_list = kIsList<T>,
      .read = [=](RunConfig& config, std::string_view written) { return read_value(written, config.*part.*member); },
      .write = [=](const RunConfig& config) { return toml_value(config.*part.*member); }};
}

std::vector<ConfigKey> make_keys() {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  std::vector<ConfigKey> keys;
  const auto model = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(key("model", &RunConfig::model, member, name, on_resume, meaning));
  };
  using Model = AllAttentionOptions;
  model(&Model::memory_mode, "memory_mode", kKeep,
        "where a layer keeps what it knows (docs/all-attention.md, variants)");
  model(&Model::vocabulary, "vocabulary", kKeep, "symbols; 0: as many as the data have");
  model(&Model::layers, "layers", kKeep, "layers");
  model(&Model::width, "width", kKeep, "numbers in a hidden state");
  model(&Model::heads, "heads", kKeep, "heads of each layer; must divide width");
  model(&Model::inner, "inner", kKeep, "width of the feed-forward sublayer, slots of ff_attn's (those two only)");
  model(&Model::slots, "slots", kKeep, "persistent slots of each head (single_head: of all)");
  model(&Model::max_span, "max_span", kKeep, "positions that a head can look back at most");
  model(&Model::span, "span", kKeep, "how far heads look: learned, max_span, or computed per query");
  model(&Model::ramp, "ramp", kKeep, "positions: width of the soft edge of a span");
  model(&Model::span_init, "span_init", kChange, "adaptive spans at the start, as a share of max_span, 0 to 1");
  model(&Model::mask_offset, "mask_offset", kKeep, "1: the mask begins one position earlier");
  model(&Model::ramp_gradient, "ramp_gradient", kChange, "which corners of the soft edge move a span");
  model(&Model::pad, "pad", kKeep, "before a text: zero vectors, or nothing");
  model(&Model::position_values, "position_values", kKeep, "relative positions in the values too");
  model(&Model::cutoffs, "cutoffs", kKeep,
        "word ids that cut the vocabulary into clusters: adaptive input and softmax");
  model(&Model::tie_tables, "tie_tables", kKeep, "clusters: input and output share vectors");
  model(&Model::tie_projections, "tie_projections", kKeep, "clusters: and their projections");
  model(&Model::table_init, "table_init", kChange, "clusters: deviation of vectors at the start, 1 or d_i^-0.5");
  model(&Model::dropout, "dropout", kChange, "share of attention weights and feed-forward activations");
  model(&Model::embedding_dropout, "embedding_dropout", kChange, "share of embeddings and last hidden states");
  model(&Model::attention_memory, "attention_memory", kChange,
        "MiB for attention weights that are kept, not computed again; each layer has a share");

  const auto optimizer = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(key("optimizer", &RunConfig::optimizer, member, name, on_resume, meaning));
  };
  optimizer(&OptimizerOptions::kind, "kind", kKeep, "update rule");
  optimizer(&OptimizerOptions::clip, "clip", kChange, "largest norm of a gradient; 0: not clipped");
  optimizer(&OptimizerOptions::clip_kind, "clip_kind", kChange,
            "what is shrunk: a tensor's step or gradient (adagrad), all gradients (adam, sgd)");
  optimizer(&OptimizerOptions::beta1, "beta1", kChange, "adam: decay of the first moment per step");
  optimizer(&OptimizerOptions::beta2, "beta2", kChange, "adam: decay of the second moment per step");
  optimizer(&OptimizerOptions::epsilon, "epsilon", kChange, "adam: added to the root of the second moment");
  optimizer(&OptimizerOptions::momentum, "momentum", kChange, "sgd: share of the last step that is kept");
  optimizer(&OptimizerOptions::weight_decay, "weight_decay", kChange, "adam: decoupled decay, times the rate per step");
  optimizer(&OptimizerOptions::span_rate_share, "span_rate_share", kChange,
            "rate of the spans, as a share of the rate");

  const auto schedule = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(key("schedule", &RunConfig::schedule, member, name, kChange, meaning));
  };
  schedule(&Schedule::rate, "rate", "highest learning rate");
  schedule(&Schedule::warmup, "warmup", "steps over which the rate rises linearly");
  schedule(&Schedule::decay, "decay", "how the rate falls after the warm-up");
  schedule(&Schedule::clock, "clock", "time of an update");
  schedule(&Schedule::final_share, "final_share", "share of the rate that a decay ends at");
  schedule(&Schedule::steps, "steps", "steps of the run before fine-tuning");
  schedule(&Schedule::finetune, "finetune", "begins after schedule.steps, or on a plateau of validation");
  schedule(&Schedule::finetune_share, "finetune_share", "share of the rate in fine-tuning");
  schedule(&Schedule::plateau_validations, "plateau_validations", "validations without improvement that are a plateau");
  schedule(&Schedule::plateau_margin, "plateau_margin", "bits per token: less is no improvement");

  const auto training = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(key("training", &RunConfig::training, member, name, kChange, meaning));
  };
  training(&TrainingOptions::batch, "batch", "streams of text read side by side");
  training(&TrainingOptions::block, "block", "tokens of each stream per step");
  training(&TrainingOptions::split, "split", "pieces that a batch is computed in, to save memory; must divide batch");
  training(&TrainingOptions::products, "products", "operands of matrix products; all else stays f32");
  training(&TrainingOptions::activations, "activations",
           "what is stored between parameters and losses (docs/numerics.md)");
  training(&TrainingOptions::span_loss, "span_loss", "weight of the mean span in the loss, per position");
  training(&TrainingOptions::finetune_steps, "finetune_steps", "steps of fine-tuning, after the others");
  training(&TrainingOptions::report_every, "report_every", "steps between reports");
  training(&TrainingOptions::validate_every, "validate_every", "steps between short validations");
  training(&TrainingOptions::validate_blocks, "validate_blocks", "blocks of a short validation at most");
  training(&TrainingOptions::checkpoint_every, "checkpoint_every", "steps between checkpoints");
  training(&TrainingOptions::gradient_report, "gradient_report",
           "report every tensor's gradient, for engram gradients");
  training(&TrainingOptions::seed, "seed", "of weights, dropout and reading");
  return keys;
}

}  // namespace

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

const ConfigKey* find_config_key(std::string_view section, std::string_view name) {
  for (const ConfigKey& candidate : config_keys())
    if (candidate.section == section && candidate.name == name) return &candidate;
  return nullptr;
}

const ConfigKey& nearest_config_key(std::string_view section, std::string_view name) {
  // A key in the wrong section costs as much as one wrong character.
  const auto cost = [&](const ConfigKey& candidate) {
    return 2 * edit_distance(name, candidate.name) +
           std::min<std::size_t>(2, edit_distance(section, candidate.section));
  };
  const auto keys = config_keys();
  return *std::ranges::min_element(keys, {}, cost);
}

namespace {

constexpr std::string_view kOneOf = "one of ";

/// a | b | c of: one of "a", "b", "c".
std::string choices_of(std::string_view rule) {
  std::string choices;
  for (const char byte : rule.substr(kOneOf.size()))
    choices += byte == ',' ? " |" : byte == '"' ? "" : std::string(1, byte);
  return choices;
}

}  // namespace

std::string config_help() {
  const RunConfig defaults;
  std::string help = "Keys of the configuration, with their defaults (TOML; --set section.key=value changes one):\n";
  std::string_view section;
  for (const ConfigKey& entry : config_keys()) {
    if (entry.section != section) help += fmt::format("  [{}]\n", entry.section);
    section = entry.section;
    help += fmt::format("    {:<36}{}", fmt::format("{} = {}", entry.name, entry.write(defaults)), entry.meaning);
    if (entry.rule.starts_with(kOneOf)) help += ": " + choices_of(entry.rule);
    help += '\n';
  }
  return help;
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace engram
