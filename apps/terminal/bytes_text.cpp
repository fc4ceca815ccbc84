#include "apps/terminal/bytes_text.hpp"

#include <fmt/format.h>

namespace engram {

std::string bytes_text(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 1048576) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1073741824) return fmt::format("{:.1f} MiB", bytes / 1048576);
  return bytes < 1e18 ? fmt::format("{:.2f} GiB", bytes / 1073741824) : fmt::format("{:.2e} bytes", bytes);
}

}  // namespace engram
