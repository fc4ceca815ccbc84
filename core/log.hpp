#pragma once
/// Warnings of the library and messages of the apps: one line per event, to stderr, or to where a program wants them.

#include <functional>
#include <string_view>

namespace engram {

enum class LogLevel : unsigned char { info, warning };

/// Writes `engram: message` (or `engram: warning: message`) to stderr as one line, on a terminal wrapped at words
/// (core/wrapped_message.hpp), or hands the message to the sink.
void log(LogLevel level, std::string_view message);
/// Writes the line without anything before it, and ends it; a sink gets it as information.
void log_line(std::string_view line);

/// What takes messages in the place of stderr: each whole, without "engram: " and without a line end. Calls do not
/// overlap, and come from any thread that computes. It must neither throw nor log.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;
/// From now on messages of this process go to `sink`; an empty one: to stderr, as before. Returns the one that took
/// them until now.
LogSink send_log_to(LogSink sink);

/// From now on log() writes nothing: this process is one of several, and another one speaks.
void leave_log_to_others();
bool log_is_left_to_others();

}  // namespace engram
