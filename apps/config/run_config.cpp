#include "apps/config/run_config.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "apps/config/config_keys.hpp"
#include "apps/data/read_file.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct Assignment {
  std::string section, name, value;
};

std::string place(const std::string& source) { return "\n  in " + source; }

std::string trimmed(std::string_view part) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = part.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(part.substr(first, part.find_last_not_of(kSpace) - first + 1));
}

/// CLI11 skips lines that are too short, takes a line without '=' for a switch, and joins the lists of a key that two
/// lines in a row give: these are refused here.
void check_lines(const std::string& toml, const std::string& source) {
  std::istringstream lines(toml);
  std::string line, inside, before;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    const std::string content = trimmed(line.substr(0, line.find('#')));
    if (content.empty()) continue;
    const bool section = content.front() == '[' && content.back() == ']' && content.size() > 2;
    const std::size_t equals = content.find('=');
    if (!section && (equals == std::string::npos || equals == 0 || equals + 1 == content.size()))
      throw UsageError(text("config: every line must be [section] or key = value, got '", content, "'",
                            place(text(source, ", line ", number))));
    std::string name = section ? "" : trimmed(std::string_view(content).substr(0, equals));
    if (section)
      inside = content.substr(1, content.size() - 2) + ".";
    else if (name == before)
      throw UsageError(text("config: '", inside, name, "' must be given once, got it again",
                            place(text(source, ", line ", number))));
    before = std::move(name);
  }
}

[[noreturn]] void throw_unknown(ModelFamily family, std::string_view section, std::string_view name,
                                const std::string& source) {
  const std::string full = section.empty() ? std::string(name) : text(section, ".", name);
  for (const ModelFamily other : kModelFamilies)
    if (find_config_key(other, section, name) != nullptr)
      throw UsageError(text("config: '", full, "' is no key of family ", name_of(family), ", but of ", name_of(other),
                            place(source), "\n  model.family says which family the model is of"));
  throw UsageError(text("config: '", full, "' is no key, the nearest one is '",
                        nearest_config_key(family, section, name).full_name(), "'", place(source)));
}

void check_section(const std::string& section, const std::string& source) {
  const auto keys = config_keys(ModelFamily::all_attention);  // all families have the same sections
  if (std::ranges::any_of(keys, [&](const ConfigKey& key) { return key.section == section; })) return;
  const auto nearest =
      std::ranges::min_element(keys, {}, [&](const ConfigKey& key) { return edit_distance(section, key.section); });
  throw UsageError(
      text("config: [", section, "] is no section, the nearest one is [", nearest->section, "]", place(source)));
}

/// Keys that older versions wrote, in the words of today.
Assignment in_todays_words(Assignment assignment) {
  if (assignment.section == "model" && assignment.name == "adaptive_span" &&
      (assignment.value == "true" || assignment.value == "false"))
    return {"model", "span", assignment.value == "true" ? "adaptive" : "fixed"};
  return assignment;
}

std::vector<Assignment> read_assignments(const std::string& toml, const std::string& source) {
  check_lines(toml, source);
  std::istringstream input(toml);
  const CLI::ConfigTOML reader;
  std::vector<Assignment> found;
  std::set<std::pair<std::string, std::string>> seen;
  for (const CLI::ConfigItem& item : reader.from_config(input)) {
    const std::string section = CLI::detail::join(item.parents, ".");
    if (item.name == "++" || item.name == "--") {
      check_section(section, source);
      continue;
    }
    const bool is_list = std::ranges::any_of(kModelFamilies, [&](ModelFamily family) {
      const ConfigKey* const key = find_config_key(family, section, item.name);
      return key != nullptr && key->is_list;
    });
    const bool fits = item.inputs.size() == 1 || is_list;
    Assignment assignment = in_todays_words({section, item.name, CLI::detail::join(item.inputs, ",")});
    if (!fits || !seen.emplace(assignment.section, assignment.name).second)
      throw UsageError(text("config: '", section, ".", item.name, "' must be given once, with one value, got '",
                            CLI::detail::join(item.inputs, ", "), "'", place(source)));
    found.push_back(std::move(assignment));
  }
  return found;
}

Assignment read_override(const std::string& written) {
  const std::size_t equals = written.find('=');
  const std::size_t dot = written.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    throw UsageError(text("--set must be section.key=value, got '", written, "'"));
  std::string value = trimmed(std::string_view(written).substr(equals + 1));
  CLI::detail::remove_quotes(value);
  return {trimmed(std::string_view(written).substr(0, dot)),
          trimmed(std::string_view(written).substr(dot + 1, equals - dot - 1)), std::move(value)};
}

void assign(RunConfig& config, const Assignment& written, const std::string& source) {
  const auto [section, name, value] = in_todays_words(written);
  const ConfigKey* key = find_config_key(config.model.family, section, name);
  if (key == nullptr) throw_unknown(config.model.family, section, name, source);
  if (!key->read(config, value))
    throw UsageError(
        text("config: ", section, ".", name, " must be ", key->rule, ", got '", value, "'", place(source)));
}

}  // namespace

void RunConfig::check() const {
  model.check();
  optimizer.check();
  schedule.check();
  const auto require = [](bool valid, std::string_view option, std::string_view rule, auto value) {
    if (!valid) throw UsageError(text(option, " must be ", rule, ", got ", value));
  };
  // The rows of a block are counted in int; the counters of dropout take a step in 32 bits.
  constexpr std::int64_t kMostRows = 1 << 24, kMostSteps = std::numeric_limits<std::uint32_t>::max();
  require(schedule.steps >= 1, "schedule: steps", "at least 1", schedule.steps);
  require(training.finetune_steps >= 0, "training: finetune_steps", "at least 0", training.finetune_steps);
  require(schedule.steps <= kMostSteps && training.finetune_steps <= kMostSteps - schedule.steps,
          "schedule: steps and training: finetune_steps", text("together at most ", kMostSteps),
          text(schedule.steps, " and ", training.finetune_steps));
  require(training.batch >= 1 && training.batch <= kMostRows, "training: batch", "from 1 to 2^24 streams",
          training.batch);
  require(training.block >= 1 && training.block <= kMostRows, "training: block", "from 1 to 2^24 tokens",
          training.block);
  require(training.extension >= 0 && training.extension <= kMostRows - training.block, "training: extension",
          text("from 0 to 2^24 - block ", training.block), training.extension);
  if (model.family == ModelFamily::transformer_xl && model.transformer_xl.positions == PositionKind::absolute_learned) {
    constexpr std::int64_t kDrawnMore = 15;
    const std::int64_t longest = training.block + training.extension + (training.drawn_lengths ? kDrawnMore : 0);
    require(model.transformer_xl.position_rows >= longest, "model: position_rows",
            text("at least ", longest, ", the longest block with its extension"), model.transformer_xl.position_rows);
  }
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
  require(training.span_loss >= 0 && std::isfinite(training.span_loss), "training: span_loss", "at least 0",
          training.span_loss);
  require(training.report_every >= 1, "training: report_every", "at least 1", training.report_every);
  require(training.validate_every >= 1, "training: validate_every", "at least 1", training.validate_every);
  require(training.validate_blocks >= 1, "training: validate_blocks", "at least 1", training.validate_blocks);
  require(training.checkpoint_every >= 1, "training: checkpoint_every", "at least 1", training.checkpoint_every);
}

RunConfig parse_run_config(const std::string& toml, const std::string& source,
                           const std::vector<std::string>& overrides) {
  RunConfig config;
  bool clip_kind_given = false;
  const auto take = [&](const Assignment& assignment, const std::string& from) {
    assign(config, assignment, from);
    clip_kind_given = clip_kind_given || (assignment.section == "optimizer" && assignment.name == "clip_kind");
  };
  // The family first: it decides which keys there are.
  std::vector<std::pair<Assignment, std::string>> assignments;
  for (Assignment& assignment : read_assignments(toml, source)) assignments.emplace_back(std::move(assignment), source);
  for (const std::string& written : overrides) assignments.emplace_back(read_override(written), "--set " + written);
  std::ranges::stable_partition(
      assignments, [](const auto& entry) { return entry.first.section == "model" && entry.first.name == "family"; });
  for (const auto& [assignment, from] : assignments) take(assignment, from);
  if (!clip_kind_given)
    config.optimizer.clip_kind =
        config.optimizer.kind == OptimizerKind::adagrad ? ClipKind::per_tensor_step : ClipKind::global;
  try {
    config.check();
  } catch (const UsageError& error) {
    throw UsageError(text("config: ", error.what(), place(source)));
  }
  return config;
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
