#pragma once
/// Lines of metrics.jsonl for those who show what can be read: a line that is no report is left out, and told. Who
/// needs all of them takes read_metrics() (metrics_reader.hpp).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace engram {

/// A count that a line has by a name: an integer from 0 to 2^53. Nothing where it has none, or something else.
std::optional<std::int64_t> count_in(const nlohmann::json& line, const char* name);
/// A text that a line has by a name; empty where it has none, or something else.
std::string text_in(const nlohmann::json& line, const char* name);

/// Hands over a line that is a JSON object with an event and the count of a step. Returns what is wrong with another
/// one, a part of a sentence; of what `take` throws the words of an Error. Empty: nothing.
std::string take_report(std::string_view line, const std::function<void(const nlohmann::json&)>& take);

/// The lines of a log that are left out: the first one and why, and how many more.
class LeftOutLines {
 public:
  /// `number`: of the line, the first being 1.
  void add(std::int64_t number, std::string_view fault);
  /// "line 3 of 'a/metrics.jsonl' is no report and is left out: it is no JSON; so are 2 more lines"; empty: none is.
  std::string words(const std::filesystem::path& file) const;

 private:
  std::int64_t first_ = 0, count_ = 0;
  std::string fault_;
};

/// Hands over every report of a file, in order; a torn last line is none. Throws FileError when it cannot be read.
LeftOutLines take_reports(const std::filesystem::path& metrics_file,
                          const std::function<void(const nlohmann::json&)>& take);

}  // namespace engram
