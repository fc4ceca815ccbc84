#pragma once
/// When, where and by which program a run was started, so that it can be repeated.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// Now, as RFC 3339 has it, in UTC and whole seconds: "2026-11-26T02:45:00Z".
std::string utc_now();

/// The seconds since 1970 began of a time that utc_now() wrote; none for other texts.
std::optional<std::int64_t> utc_seconds(std::string_view written);

/// The words that this process was started with, the program's name first; empty where the system (Linux) does not say.
std::vector<std::string> command_words();

/// The absolute path of the folder that this process works in, which relative paths of its command are in; empty where
/// the system does not say, as of a folder that was removed.
std::string working_directory();

/// The name of a processor as /proc/cpuinfo, whose text this is, tells it: "model name"; of the first one, and "" where
/// there is no such line.
std::string processor_name(std::string_view cpuinfo);

/// Members "command" (a list of words), "directory" (working_directory(), where there is one), "version", "commit",
/// "compiler", "build", "host", "processor" (its name, or the kind of machine where it has none) and "processors" (how
/// many threads may run side by side).
nlohmann::json provenance();

}  // namespace engram
