#include "core/device.hpp"

#include <charconv>

#include "core/error.hpp"

namespace engram {

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::simulated:
      return "simulated";
  }
  return "?";
}

Device parse_device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  int index = 0;
  bool valid = true;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    valid = error == std::errc() && end == digits.data() + digits.size() && index >= 0 && kind == "cuda";
  }
  for (DeviceKind candidate : {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::simulated})
    if (valid && name_of(candidate) == kind) return {candidate, index};
  throw UsageError(text("device: must be cpu, cuda, cuda:N or simulated, got '", name, "'"));
}

void append_text(std::string& out, DeviceKind kind) { out += name_of(kind); }

void append_text(std::string& out, Device device) {
  append_text(out, device.kind);
  if (device.kind != DeviceKind::cuda) return;
  out += ':';
  append_text(out, std::int64_t{device.index});
}

}  // namespace engram
