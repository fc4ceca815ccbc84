#include "apps/run/config/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "apps/run/config/section_keys.hpp"
#include "apps/terminal/edit_distance.hpp"

namespace engram {
namespace {

/// Of a small model and a short run, of every family: the width is even and a multiple of 3.
std::string_view example_of(ModelFamily family, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"model.layers", "2"},  {"model.width", "120"},    {"model.heads", "4"},      {"model.slots", "64"},
      {"model.inner", "480"}, {"model.max_span", "256"}, {"schedule.rate", "0.05"}, {"schedule.steps", "1000"}};
  // The others have a default.
  if (key == "model.inner" && family != ModelFamily::transformer_xl) return {};
  if (key == "model.layers" && family == ModelFamily::recurrent) return {};
  for (const auto& [name, example] : kExamples)
    if (name == key) return example;
  return {};
}

std::vector<ConfigKey> make_keys(ModelFamily family) {
  std::vector<ConfigKey> keys;
  keys.push_back(make_key(
      "model", [](auto& config) -> auto& { return config.model; }, &ModelOptions::family, "family",
      ConfigKey::OnResume::keep, "what kind of model; decides which other keys [model] has"));
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

  add_optimizer_keys(keys, family);
  add_schedule_keys(keys);
  add_training_keys(keys, family);
  for (ConfigKey& key : keys) key.example = example_of(family, key.full_name());
  return keys;
}

}  // namespace

bool is_required(const ConfigKey& key, const RunConfig& config) {
  if (key.section == "model" && config.model.family == ModelFamily::all_attention) {
    const MemoryMode mode = config.model.all_attention.memory_mode;
    if (key.name == "slots") return has_slots(mode);
    if (key.name == "inner") return has_second_sublayer(mode);
  }
  return !key.example.empty();
}

std::span<const ConfigKey> config_keys(ModelFamily family) {
  static const auto keys = [] {
    std::array<std::vector<ConfigKey>, kModelFamilies.size()> all;
    for (const ModelFamily one : kModelFamilies) all[static_cast<std::size_t>(one)] = make_keys(one);
    return all;
  }();
  return keys.at(static_cast<std::size_t>(family));
}

const ConfigKey* find_config_key(ModelFamily family, std::string_view section, std::string_view name) {
  for (const ConfigKey& candidate : config_keys(family))
    if (candidate.section == section && candidate.name == name) return &candidate;
  return nullptr;
}

const ConfigKey& nearest_config_key(ModelFamily family, std::string_view section, std::string_view name) {
  section = compared_part(section);
  name = compared_part(name);
  const auto keys = config_keys(family);
  const ConfigKey* nearest = nullptr;
  std::size_t least = 0, section_cost = 0;
  std::string_view last_section;
  for (const ConfigKey& candidate : keys) {
    // A key in the wrong section costs as much as one wrong character.
    if (nearest == nullptr || candidate.section != last_section)
      section_cost = std::min<std::size_t>(2, edit_distance(section, candidate.section));
    last_section = candidate.section;
    if (nearest != nullptr && 2 * least_distance(name, candidate.name) + section_cost >= least) continue;
    const std::size_t cost = 2 * edit_distance(name, candidate.name) + section_cost;
    if (nearest != nullptr && cost >= least) continue;
    nearest = &candidate;
    least = cost;
  }
  return *nearest;  // NOLINT(clang-analyzer-core.*): every family has keys
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

}  // namespace engram
