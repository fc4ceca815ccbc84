#include "apps/spans/span_history.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/data/read_file.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

void take_line(std::string_view line, std::vector<SpanMoment>& history) {
  const nlohmann::json object = nlohmann::json::parse(line);
  const std::string event = object.at("event");
  const std::int64_t step = object.at("step");
  if (event == "resume")
    while (!history.empty() && history.back().step > step) history.pop_back();
  if (event == "train" && object.contains("span_mean"))
    history.push_back({step, object.at("span_mean"), object.at("span_longest"), object.at("span_layer_mean"),
                       object.value("spans", std::vector<std::vector<std::int64_t>>{})});
}

}  // namespace

std::vector<SpanMoment> read_span_history(const std::filesystem::path& metrics_file) {
  const std::string bytes = data::read_bytes(metrics_file);
  std::vector<SpanMoment> history;
  std::size_t number = 1;
  for (std::string_view rest = bytes; rest.find('\n') != rest.npos; ++number) {
    const std::size_t length = rest.find('\n');
    try {
      take_line(rest.substr(0, length), history);
    } catch (const nlohmann::json::exception& error) {
      throw FileError(text("spans: line ", number, " of '", metrics_file.string(), "' is no report: ", error.what()));
    }
    rest.remove_prefix(length + 1);
  }
  return history;
}

}  // namespace engram
