#include "apps/config/config_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace engram {
namespace {

template <class T>
T parse_choice(std::string_view option, std::string_view name) {
  T value{};
  if (!read_value(name, value)) throw UsageError(text(option, " must be ", value_rule<T>(), ", got '", name, "'"));
  return value;
}

}  // namespace

std::string_view name_of(OptimizerKind kind) {
  return kind == OptimizerKind::adagrad ? "adagrad" : kind == OptimizerKind::adam ? "adam" : "sgd";
}
std::string_view name_of(ClipKind kind) {
  return kind == ClipKind::per_tensor_step ? "step" : kind == ClipKind::per_tensor_gradient ? "gradient" : "global";
}
std::string_view name_of(EpsilonAt at) { return at == EpsilonAt::corrected ? "corrected" : "uncorrected"; }
std::string_view name_of(TableKind kind) { return kind == TableKind::adam ? "adam" : "row_adagrad"; }
std::string_view name_of(TableMode mode) {
  switch (mode) {
    case TableMode::dense:
      return "dense";
    case TableMode::lazy:
      return "lazy";
    case TableMode::row_step:
      return "row_step";
    case TableMode::deferred:
      break;
  }
  return "deferred";
}
std::string_view name_of(Schedule::Decay decay) {
  switch (decay) {
    case Schedule::Decay::none:
      return "none";
    case Schedule::Decay::linear:
      return "linear";
    case Schedule::Decay::cosine:
      return "cosine";
    case Schedule::Decay::cosine_from_start:
      return "cosine_from_start";
    case Schedule::Decay::inverse_root:
      return "inverse_root";
    case Schedule::Decay::plateau:
      break;
  }
  return "plateau";
}
std::string_view name_of(LossScale scale) { return scale == LossScale::mean ? "mean" : "time_sum"; }
std::string_view name_of(Schedule::Clock clock) {
  return clock == Schedule::Clock::update ? "update" : clock == Schedule::Clock::completed ? "completed" : "full_first";
}
std::string_view name_of(Schedule::Finetune finetune) {
  return finetune == Schedule::Finetune::fixed ? "fixed" : "plateau";
}
OptimizerKind parse_optimizer_kind(std::string_view name) {
  return parse_choice<OptimizerKind>("optimizer kind", name);
}
ClipKind parse_clip_kind(std::string_view name) { return parse_choice<ClipKind>("clip kind", name); }
Schedule::Decay parse_decay(std::string_view name) { return parse_choice<Schedule::Decay>("decay", name); }

bool read_list(std::string_view written, std::vector<std::int64_t>& value) {
  const auto trim = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  written = trim(written);
  if (written.starts_with('[') != written.ends_with(']')) return false;
  if (written.starts_with('[')) written = trim(written.substr(1, written.size() - 2));
  std::vector<std::int64_t> parsed;
  while (!written.empty()) {
    const std::size_t comma = written.find(',');
    std::int64_t number = 0;
    if (!read_value(trim(written.substr(0, comma)), number)) return false;
    parsed.push_back(number);
    if (comma == std::string_view::npos) break;
    written = trim(written.substr(comma + 1));
    if (written.empty()) return false;  // something must follow a comma
  }
  value = std::move(parsed);
  return true;
}

std::string toml_list(const std::vector<std::int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

std::string toml_number(double value) {
  std::string written = fmt::format("{}", value);
  if (written.find_first_of(".en") == std::string::npos) written += ".0";
  return written;
}

}  // namespace engram
