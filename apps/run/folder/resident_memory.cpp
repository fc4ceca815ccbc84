#include "apps/run/folder/resident_memory.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace engram {

void reset_peak_resident_bytes() {
  // proc(5): writing 5 resets the peak "VmHWM".
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with("VmHWM:")) continue;
    std::size_t kibibytes = 0;
    std::istringstream(line.substr(6)) >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace engram
