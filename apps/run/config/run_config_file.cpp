#include "apps/run/config/run_config_file.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "apps/data/files/read_file.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_text.hpp"
#include "apps/run/config/printable.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string place(const std::string& source) { return "\n  in " + source; }

/// "a, b, c"; empty: there is no such section.
std::string keys_of_section(ModelFamily family, std::string_view section) {
  std::string names;
  for (const ConfigKey& key : config_keys(family))
    if (key.section == section) names += text(names.empty() ? "" : ", ", key.name);
  return names;
}

[[noreturn]] void throw_unknown(ModelFamily family, const Assignment& assignment) {
  const std::string full = printable(assignment.full_name());
  for (const ModelFamily other : kModelFamilies)
    if (find_config_key(other, assignment.section, assignment.name) != nullptr)
      throw UsageError(text("config: '", full, "' is no key of family ", name_of(family), ", but of ", name_of(other),
                            place(assignment.from), "\n  model.family says which family the model is of"));
  const ConfigKey& nearest = nearest_config_key(family, assignment.section, assignment.name);
  const std::string others = keys_of_section(family, assignment.section);
  if (others.empty() || is_near(assignment.name, nearest.name))
    throw UsageError(
        text("config: '", full, "' is no key, the nearest one is '", nearest.full_name(), "'", place(assignment.from)));
  throw UsageError(
      text("config: '", full, "' is no key, those of [", assignment.section, "] are ", others, place(assignment.from)));
}

void assign(RunConfig& config, const Assignment& assignment) {
  const ConfigKey* key = find_config_key(config.model.family, assignment.section, assignment.name);
  if (key == nullptr) throw_unknown(config.model.family, assignment);
  // --set 'training.freeze="layers.0.*"' is a list of one name.
  const bool is_one_name = assignment.is_override && assignment.quoted && key->is_names;
  const bool is_string = (assignment.quoted && !is_one_name) || (assignment.is_override && key->is_text);
  const bool fits = is_string ? key->is_choice || key->is_text : !key->is_text;
  if (!fits || !key->read(config, assignment.value))
    throw UsageError(text("config: ", key->full_name(), " must be ", key->rule, ", got '",
                          printable(key->is_choice ? assignment.value : assignment.written()), "'",
                          place(assignment.from)));
}

/// The family first: it decides which keys there are.
RunConfig assembled(std::vector<Assignment> assignments) {
  const auto is = [](std::string_view key) { return [key](const Assignment& one) { return one.full_name() == key; }; };
  std::stable_partition(assignments.begin(), assignments.end(), is("model.family"));
  RunConfig config;
  for (const Assignment& assignment : assignments) assign(config, assignment);
  // The kind of clipping follows the optimiser where it is not given, and where an override puts another optimiser in
  // the place of the one that a whole configuration, as a checkpoint has it, gives it for.
  const auto overrides = [&](std::string_view key) {
    return std::ranges::any_of(assignments,
                               [key](const Assignment& one) { return one.is_override && one.full_name() == key; });
  };
  const bool is_adagrad = config.optimizer.kind == OptimizerKind::adagrad;
  const bool fits = is_adagrad != (config.optimizer.clip_kind == ClipKind::global);
  if (std::ranges::none_of(assignments, is("optimizer.clip_kind")) ||
      (!fits && overrides("optimizer.kind") && !overrides("optimizer.clip_kind")))
    config.optimizer.clip_kind = is_adagrad ? ClipKind::per_tensor_step : ClipKind::global;
  return config;
}

/// The keys that must be given and are not.
std::vector<std::string> missing_keys(const RunConfig& config, const std::vector<Assignment>& assignments) {
  std::vector<std::string> missing;
  for (const ConfigKey& key : config_keys(config.model.family)) {
    const auto gives = [&key](const Assignment& one) { return one.section == key.section && one.name == key.name; };
    if (is_required(key, config) && std::ranges::none_of(assignments, gives)) missing.push_back(key.full_name());
  }
  return missing;
}

void check_given(const RunConfig& config, const std::vector<Assignment>& assignments, const std::string& source) {
  const std::vector<std::string> missing = missing_keys(config, assignments);
  if (missing.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < missing.size(); ++i)
    list += text(i == 0 ? "" : i + 1 < missing.size() ? ", " : " and ", missing[i]);
  throw UsageError(text("config: ", list, " must be given, got no value", place(source), "\n  engram keys ",
                        name_of(config.model.family), " prints every key, with values for a trial"));
}

/// What check() says of the assignments, "" for nothing; none where keys are missing.
std::optional<std::string> fault_of(const std::vector<Assignment>& assignments) {
  try {
    const RunConfig config = assembled(assignments);
    if (!missing_keys(config, assignments).empty()) return std::nullopt;
    config.check();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// Where a fault comes from: the file, if it has the fault by itself; else the overrides without any of which there
/// would be another fault or none, over the file.
std::string source_of_fault(const std::string& fault, const std::vector<Assignment>& assignments,
                            const std::string& source) {
  const auto fault_with = [&](auto&& kept) {
    std::vector<Assignment> some;
    std::ranges::copy_if(assignments, std::back_inserter(some), kept);
    return fault_of(some);
  };
  if (fault_with([](const Assignment& one) { return !one.is_override; }) == fault) return source;
  std::string guilty, all;
  for (const Assignment& one : assignments) {
    if (!one.is_override) continue;
    all += (all.empty() ? "" : ", ") + one.from;
    // Without its family nothing is as it was.
    if (one.full_name() == "model.family") continue;
    const std::optional<std::string> without = fault_with([&one](const Assignment& other) { return &other != &one; });
    if (without && *without != fault) guilty += (guilty.empty() ? "" : ", ") + one.from;
  }
  return text(guilty.empty() ? all : guilty, ", over ", source);
}

RunConfig checked(const std::vector<Assignment>& assignments, const std::string& source) {
  RunConfig config = assembled(assignments);
  check_given(config, assignments, source);
  try {
    config.check();
  } catch (const UsageError& error) {
    throw UsageError(text("config: ", error.what(), place(source_of_fault(error.what(), assignments, source))));
  }
  return config;
}

}  // namespace

RunConfig parse_run_config(const std::string& toml, const std::string& source,
                           const std::vector<std::string>& overrides) {
  std::vector<Assignment> assignments = read_assignments(toml, source);
  for (const std::string& written : overrides) assignments.push_back(read_override(written));
  return checked(assignments, source);
}

RunConfig parse_model_config(const std::string& toml, const std::string& source) {
  std::vector<Assignment> assignments = read_assignments(toml, source);
  if (std::ranges::none_of(assignments, [](const Assignment& one) { return one.section == "schedule"; }))
    for (const char* name : {"rate", "steps"})
      assignments.push_back({.section = "schedule", .name = name, .value = "1", .from = source});
  return checked(assignments, source);
}

std::set<std::string> given_keys(const std::string& toml, const std::string& source,
                                 const std::vector<std::string>& overrides) {
  std::set<std::string> keys;
  for (const Assignment& assignment : read_assignments(toml, source)) keys.insert(assignment.full_name());
  for (const std::string& written : overrides) keys.insert(read_override(written).full_name());
  return keys;
}

RunConfig load_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  const std::filesystem::path found = find_config(file);
  return parse_run_config(data::read_bytes(found), text("'", found.string(), "'"), overrides);
}

std::string to_toml(const RunConfig& config) {
  std::string toml = "# Every key of an Engram run; `engram keys FAMILY` explains them.\n";
  std::string_view section;
  for (const ConfigKey& key : config_keys(config.model.family)) {
    if (key.section != section) toml += text("\n[", key.section, "]\n");
    section = key.section;
    toml += text(key.name, " = ", key.write(config), "\n");
  }
  return toml;
}

}  // namespace engram
