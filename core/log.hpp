#pragma once
/// Warnings of the library and messages of the apps: one line per event, to stderr.

#include <string_view>

namespace engram {

enum class LogLevel : unsigned char { info, warning };

/// Writes `engram: message` (or `engram: warning: message`) to stderr as one line.
void log(LogLevel level, std::string_view message);
/// Writes the line as it is, and ends it.
void log_line(std::string_view line);

/// From now on log() writes nothing: this process is one of several, and another one speaks.
void leave_log_to_others();
bool log_is_left_to_others();

}  // namespace engram
