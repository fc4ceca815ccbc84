#pragma once
/// The keys of each section, [model] one list for every family, and how a key is made of a member.

#include <string_view>
#include <vector>

#include "apps/run/config/config_key.hpp"
#include "apps/run/config/config_values.hpp"

namespace engram {

/// `part` finds the struct that has the member, in a RunConfig that may be const.
template <class Part, class Options, class T>
ConfigKey make_key(std::string_view section, Part part, T Options::*member, std::string_view name,
                   ConfigKey::OnResume on_resume, std::string_view meaning) {
  return {
      .section = section,
      .name = name,
      .meaning = meaning,
      .on_resume = on_resume,
      .rule = value_rule<T>(),
      .is_list = kIsList<T>,
      .is_names = kIsNames<T>,
      .is_choice = !std::is_arithmetic_v<T> && !kIsList<T> && !kIsNames<T> && !kIsText<T>,
      .is_text = kIsText<T>,
      .read = [=](RunConfig& config, std::string_view written) { return read_value(written, part(config).*member); },
      .write = [=](const RunConfig& config) { return toml_value(part(config).*member); }};
}

void add_all_attention_keys(std::vector<ConfigKey>& keys);
void add_transformer_xl_keys(std::vector<ConfigKey>& keys);
void add_product_key_keys(std::vector<ConfigKey>& keys);
void add_recurrent_keys(std::vector<ConfigKey>& keys);
/// Section [product_key], the same for all families.
void add_product_key_memory_keys(std::vector<ConfigKey>& keys);
/// Section [optimizer]; some keys are of one family.
void add_optimizer_keys(std::vector<ConfigKey>& keys, ModelFamily family);
/// Section [schedule].
void add_schedule_keys(std::vector<ConfigKey>& keys);
/// Section [training]; some keys are of one family.
void add_training_keys(std::vector<ConfigKey>& keys, ModelFamily family);

}  // namespace engram
