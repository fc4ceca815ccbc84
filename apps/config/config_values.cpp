#include "apps/config/config_values.hpp"

#include <fmt/format.h>

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
std::string_view name_of(Schedule::Decay decay) {
  return decay == Schedule::Decay::none ? "none" : decay == Schedule::Decay::linear ? "linear" : "cosine";
}
std::string_view name_of(Schedule::Finetune finetune) {
  return finetune == Schedule::Finetune::fixed ? "fixed" : "plateau";
}
OptimizerKind parse_optimizer_kind(std::string_view name) {
  return parse_choice<OptimizerKind>("optimizer kind", name);
}
ClipKind parse_clip_kind(std::string_view name) { return parse_choice<ClipKind>("clip kind", name); }
Schedule::Decay parse_decay(std::string_view name) { return parse_choice<Schedule::Decay>("decay", name); }

std::string toml_number(double value) {
  std::string written = fmt::format("{}", value);
  if (written.find_first_of(".en") == std::string::npos) written += ".0";
  return written;
}

}  // namespace engram
