#include "apps/studies/spans/span_history.hpp"

#include <string>

#include "apps/run/folder/metrics_reader.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram {
namespace {

std::vector<std::vector<std::int64_t>> heads_of(const nlohmann::json& spans) {
  using Array = const nlohmann::json::array_t&;
  std::vector<std::vector<std::int64_t>> heads;
  for (const nlohmann::json& layer : spans.get_ref<Array>()) {
    heads.emplace_back();
    for (const nlohmann::json& span : layer.get_ref<Array>()) heads.back().push_back(integer_of<std::int64_t>(span));
  }
  return heads;
}

/// A process counts shortfalls from 0: what earlier ones counted comes before.
void take_line(const nlohmann::json& object, std::vector<SpanMoment>& history, std::int64_t& earlier_shortfalls) {
  const std::string event = object.at("event");
  const auto step = integer_of<std::int64_t>(object.at("step"));
  if (event == "start") {
    // A run that was killed before its first checkpoint begins anew.
    history.clear();
    earlier_shortfalls = 0;
  }
  if (event == "resume") {
    while (!history.empty() && history.back().step > step) history.pop_back();
    earlier_shortfalls = history.empty() ? 0 : history.back().cache_shortfalls;
  }
  if (event != "train" || !object.contains("span_mean")) return;
  const bool counted = object.contains("cache_shortfalls") && earlier_shortfalls >= 0;
  history.push_back(
      {.step = step,
       .mean = object.at("span_mean"),
       .longest = object.at("span_longest"),
       .released_mean = object.at("span_layer_mean"),
       .heads = object.contains("spans") ? heads_of(object.at("spans")) : std::vector<std::vector<std::int64_t>>{},
       .cache_shortfalls =
           counted ? earlier_shortfalls + integer_of<std::int64_t>(object.at("cache_shortfalls")) : -1});
}

}  // namespace

std::vector<SpanMoment> read_span_history(const std::filesystem::path& metrics_file) {
  std::vector<SpanMoment> history;
  std::int64_t earlier_shortfalls = 0;
  read_metrics(metrics_file, [&](const nlohmann::json& line) { take_line(line, history, earlier_shortfalls); });
  return history;
}

std::int64_t shortfalls_at(const std::vector<SpanMoment>& history, std::int64_t step) {
  std::int64_t count = -1;
  for (const SpanMoment& moment : history)
    if (moment.step <= step) count = moment.cache_shortfalls;
  return count;
}

}  // namespace engram
