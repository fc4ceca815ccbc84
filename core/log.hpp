#pragma once
/// Warnings of the library and messages of the apps: one line per event, to stderr.

#include <string_view>

namespace engram {

enum class LogLevel : unsigned char { info, warning };

/// Writes `engram: message` (or `engram: warning: message`) to stderr as one line.
void log(LogLevel level, std::string_view message);

}  // namespace engram
