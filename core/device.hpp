#pragma once
/// Names of devices. `simulated` runs the CUDA kernels' sources on the host.

#include <cstdint>
#include <string>
#include <string_view>

namespace engram {

enum class DeviceKind : std::uint8_t { cpu, cuda, simulated };
inline constexpr int kDeviceKinds = 3;

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

std::string_view name_of(DeviceKind kind);
/// "cpu", "cuda", "cuda:1", "simulated". Throws UsageError on other text.
Device parse_device(std::string_view name);

/// For messages (core/error.hpp): the name, of a card with its index, "cuda:1".
void append_text(std::string& out, DeviceKind kind);
void append_text(std::string& out, Device device);

}  // namespace engram
