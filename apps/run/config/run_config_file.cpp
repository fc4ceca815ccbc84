#include "apps/run/config/run_config.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>

#include "apps/run/config/config_key.hpp"
#include "apps/run/config/config_text.hpp"
#include "apps/run/config/printable.hpp"
#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"
#include "nn/option_limits.hpp"

namespace engram {
namespace {

std::string place(const std::string& source) { return "\n  in " + source; }

[[noreturn]] void throw_unknown(ModelFamily family, const Assignment& assignment) {
  const std::string full = printable(assignment.full_name());
  for (const ModelFamily other : kModelFamilies)
    if (find_config_key(other, assignment.section, assignment.name) != nullptr)
      throw UsageError(text("config: '", full, "' is no key of family ", name_of(family), ", but of ", name_of(other),
                            place(assignment.from), "\n  model.family says which family the model is of"));
  throw UsageError(text("config: '", full, "' is no key, the nearest one is '",
                        nearest_config_key(family, assignment.section, assignment.name).full_name(), "'",
                        place(assignment.from)));
}

void assign(RunConfig& config, const Assignment& assignment) {
  const ConfigKey* key = find_config_key(config.model.family, assignment.section, assignment.name);
  if (key == nullptr) throw_unknown(config.model.family, assignment);
  if ((assignment.quoted && !key->is_choice) || !key->read(config, assignment.value))
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
  if (std::ranges::none_of(assignments, is("optimizer.clip_kind")))
    config.optimizer.clip_kind =
        config.optimizer.kind == OptimizerKind::adagrad ? ClipKind::per_tensor_step : ClipKind::global;
  return config;
}

/// The keys that must be given and are not.
std::vector<std::string> missing_keys(const RunConfig& config, const std::vector<Assignment>& assignments) {
  std::vector<std::string> missing;
  for (const ConfigKey& key : config_keys(config.model.family)) {
    const auto gives = [&key](const Assignment& one) { return one.section == key.section && one.name == key.name; };
    if (key.is_required(config) && std::ranges::none_of(assignments, gives)) missing.push_back(key.full_name());
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

void RunConfig::check() const {
  const auto require = [](bool valid, std::string_view option, std::string_view rule, auto value) {
    if (!valid) throw UsageError(text(option, " must be ", rule, ", got ", value));
  };
  const auto within = [&require](std::string_view option, auto value, std::type_identity_t<decltype(value)> least,
                                 std::type_identity_t<decltype(value)> most) {
    require(value >= least && value <= most, option, text("from ", least, " to ", most), value);
  };
  model.check();
  optimizer.check();
  constexpr std::int64_t kMostSteps = option_limits::kSteps;
  within("schedule: steps", schedule.steps, 1, kMostSteps);
  schedule.check();
  // The rows of a block are counted in int, and so are its tokens.
  constexpr std::int64_t kMostRows = 1 << 24, kMostTokens = option_limits::kRows, kDrawnMore = 15;
  within("training: finetune_steps", training.finetune_steps, 0, kMostSteps);
  require(training.finetune_steps <= kMostSteps - schedule.steps, "schedule: steps and training: finetune_steps",
          text("together at most ", kMostSteps), text(schedule.steps, " and ", training.finetune_steps));
  require(training.batch >= 1 && training.batch <= kMostRows, "training: batch", "from 1 to 2^24 streams",
          training.batch);
  require(training.block >= 1 && training.block <= kMostRows, "training: block", "from 1 to 2^24 tokens",
          training.block);
  require(training.extension >= 0 && training.extension <= kMostRows - training.block, "training: extension",
          text("from 0 to 2^24 - block ", training.block), training.extension);
  const std::int64_t longest = training.block + training.extension + (training.drawn_lengths ? kDrawnMore : 0);
  require(training.batch <= kMostTokens / longest, "training: batch",
          text("at most ", kMostTokens / longest, " streams, with blocks of ", longest, " tokens"), training.batch);
  if (model.family == ModelFamily::transformer_xl && model.transformer_xl.positions == PositionKind::absolute_learned)
    require(model.transformer_xl.position_rows >= longest, "model: position_rows",
            text("at least ", longest, ", the longest block with its extension"), model.transformer_xl.position_rows);
  // Recurrences have no kernels for rounded states.
  require(model.family != ModelFamily::recurrent || training.activations == ActivationPrecision::f32,
          "training: activations", "f32 for models of family recurrent",
          "bf16\n  --dtype bf16 rounds the operands of products");
  if (model.family == ModelFamily::product_key)
    require(model.product_key.position_rows >= training.block, "model: position_rows",
            text("at least ", training.block, ", the tokens of a block"), model.product_key.position_rows);
  require(!training.latest_half || training.extension == 0, "training: latest_half",
          text("false with an extension of ", training.extension), training.latest_half);
  require(training.split >= 1 && training.batch % training.split == 0, "training: split",
          text("a divisor of batch ", training.batch), training.split);
  require(training.split <= 65535, "training: split", "at most 65535", training.split);
  within("training: span_loss", training.span_loss, 0, option_limits::kLargest);
  within("training: report_every", training.report_every, 1, kMostSteps);
  within("training: validate_every", training.validate_every, 1, kMostSteps);
  within("training: validate_blocks", training.validate_blocks, 1, kMostTokens);
  within("training: checkpoint_every", training.checkpoint_every, 1, kMostSteps);
}

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
  return parse_run_config(data::read_bytes(file), text("'", file.string(), "'"), overrides);
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
