#include "apps/run/folder/metrics_reader.hpp"

#include <string_view>

#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"
#include "core/files/parse_json.hpp"

namespace engram {

void read_metrics(const std::filesystem::path& metrics_file, const std::function<void(const nlohmann::json&)>& take) {
  const std::string bytes = data::read_bytes(metrics_file, data::Pipes::refused);
  std::size_t number = 1;
  for (std::string_view rest = bytes; rest.find('\n') != rest.npos; ++number) {
    const std::size_t length = rest.find('\n');
    try {
      take(parse_json(rest.substr(0, length)));
    } catch (const nlohmann::json::exception& error) {
      throw FileError(text("metrics: line ", number, " of '", metrics_file.string(), "' is no report: ", error.what()));
    }
    rest.remove_prefix(length + 1);
  }
}

std::vector<nlohmann::json> read_reports(const std::filesystem::path& metrics_file, std::string_view event) {
  std::vector<nlohmann::json> found;
  read_metrics(metrics_file, [&](const nlohmann::json& line) {
    const auto step = integer_of<std::int64_t>(line.at("step"));
    const std::string name = line.at("event");
    if (name == "start") found.clear();
    if (name == "resume")
      while (!found.empty() && integer_of<std::int64_t>(found.back().at("step")) > step) found.pop_back();
    if (name == event) found.push_back(line);
  });
  return found;
}

double training_seconds(const std::filesystem::path& metrics_file, std::int64_t step) {
  double seconds = 0;
  read_metrics(metrics_file, [&](const nlohmann::json& line) {
    if (line.at("event") == "start") seconds = 0;
    if (integer_of<std::int64_t>(line.at("step")) <= step) seconds = line.value("seconds", seconds);
  });
  return seconds;
}

RunEnd read_run_end(const std::filesystem::path& metrics_file) {
  RunEnd end;
  read_metrics(metrics_file, [&end](const nlohmann::json& line) {
    const std::string event = line.at("event");
    end.step = integer_of<std::int64_t>(line.at("step"));
    if (event == "train") end.tokens_per_second = line.at("tokens_per_second").get<double>();
    if (event == "train" || event == "valid_short" || event == "gradients" || event == "sample") return;
    end.event = event;
    end.reason = line.value("reason", "");
  });
  return end;
}

}  // namespace engram
