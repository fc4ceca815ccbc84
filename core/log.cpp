#include "core/log.hpp"

#include <cstdio>
#include <string>

namespace engram {

void log(LogLevel level, std::string_view message) {
  std::string line = level == LogLevel::warning ? "engram: warning: " : "engram: ";
  line += message;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace engram
