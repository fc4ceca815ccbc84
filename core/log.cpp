#include "core/log.hpp"

#include <cstdio>
#include <string>

#include "core/terminal_line.hpp"

namespace engram {

void log(LogLevel level, std::string_view message) {
  std::string line = level == LogLevel::warning ? "engram: warning: " : "engram: ";
  line += message;
  line += '\n';
  beside_terminal_line([&line] { std::fwrite(line.data(), 1, line.size(), stderr); });
}

}  // namespace engram
