#include "apps/studies/page/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/studies/page/packed_series.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

template <class Report>
Points points_of(const std::vector<Report>& reports, double Report::*member) {
  Points points;
  for (const Report& report : reports) points.add(static_cast<double>(report.step), report.*member);
  return points;
}

/// A series, unless it has no number.
void add_series(json& object, const char* name, const Points& points) {
  if (std::ranges::any_of(points.y, [](double y) { return std::isfinite(y); })) object[name] = json_of(points);
}

json train_json(const RunLog& log) {
  json series = json::object();
  const std::vector<TrainReport>& train = log.train();
  add_series(series, "loss", points_of(train, &TrainReport::loss));
  add_series(series, "rate", points_of(train, &TrainReport::rate));
  add_series(series, "gradient_norm", points_of(train, &TrainReport::gradient_norm));
  add_series(series, "above_clip", points_of(train, &TrainReport::above_clip));
  add_series(series, "tokens_per_second", points_of(train, &TrainReport::tokens_per_second));
  add_series(series, "mean_span", points_of(train, &TrainReport::mean_span));
  add_series(series, "clock", points_of(train, &TrainReport::seconds));
  return series;
}

json valid_json(const RunLog& log) {
  json series = json::object();
  add_series(series, "loss", points_of(log.valid(), &ValidReport::loss));
  std::map<std::int64_t, std::pair<Points, Points>> memories;  // usage and KL by layer
  for (const ValidReport& report : log.valid())
    for (std::size_t i = 0; i < report.memory_layers.size(); ++i) {
      auto& [usage, kl] = memories[report.memory_layers[i]];
      if (i < report.memory_usage.size()) usage.add(static_cast<double>(report.step), report.memory_usage[i]);
      if (i < report.memory_kl.size()) kl.add(static_cast<double>(report.step), report.memory_kl[i]);
    }
  for (const auto& [layer, figures] : memories)
    series["memories"].push_back(
        {{"layer", layer}, {"usage", json_of(figures.first)}, {"kl", json_of(figures.second)}});
  return series;
}

/// Spans at moments that are as far apart as there is room for; the last one is among them.
json spans_json(const PageRun& run) {
  constexpr std::size_t kMostMoments = 200, kMostNumbers = 60'000;
  const std::vector<SpanReportLine>& spans = run.log.spans();
  if (spans.empty() || spans.back().heads.empty()) return nullptr;
  const std::size_t layers = spans.back().heads.size(), heads = spans.back().heads.front().size();
  const std::size_t moments = std::min(
      {spans.size(), kMostMoments, std::max<std::size_t>(2, kMostNumbers / std::max<std::size_t>(1, layers * heads))});
  std::vector<double> steps, values;
  double longest = run.config ? static_cast<double>(run.config->model.all_attention.max_span) : 0;
  for (std::size_t i = 0; i < moments; ++i) {
    const std::size_t at = moments == 1 ? spans.size() - 1 : i * (spans.size() - 1) / (moments - 1);
    steps.push_back(static_cast<double>(spans[at].step));
    for (std::size_t layer = 0; layer < layers; ++layer)
      for (std::size_t head = 0; head < heads; ++head) {
        const bool is_there = layer < spans[at].heads.size() && head < spans[at].heads[layer].size();
        values.push_back(is_there ? spans[at].heads[layer][head] : std::nan(""));
        if (is_there) longest = std::max(longest, values.back());
      }
  }
  return {{"layers", layers},
          {"heads", heads},
          {"longest", longest},
          {"steps", packed_floats(steps)},
          {"values", packed_floats(values)}};
}

json gradients_json(const json& report) {
  json tensors = json::object();
  const auto found = report.find("tensors");
  if (found == report.end() || !found->is_array()) return tensors;
  for (const json& tensor : *found)
    if (tensor.contains("name") && tensor.at("name").is_string())
      tensors[tensor.at("name").get<std::string>()] = {{"norm", tensor.value("norm", json())},
                                                       {"clipped", tensor.value("clipped", json())}};
  return tensors;
}

json memories_json(const ProductKeyReport& report) {
  constexpr std::int64_t kMostRanks = 300;
  json list = json::array();
  for (const ProductKeyReport::Row& row : report.rows) {
    if (row.shares.empty()) continue;
    Points shares;
    for (const std::int64_t rank : thinned_ranks(std::ssize(row.shares), kMostRanks))
      shares.add(static_cast<double>(rank), row.shares[static_cast<std::size_t>(rank - 1)]);
    json one{{"name", row.name()},       {"slots", row.metrics.slots},    {"usage", row.metrics.usage},
             {"kl", row.metrics.kl},     {"half", row.metrics.half_mass}, {"most", row.metrics.most_mass},
             {"shares", json_of(shares)}};
    if (row.idle) {
      one["rows"] = row.idle->all;
      one["never"] = row.idle->never;
      for (const IdleRows::Longer& longer : row.idle->longer) one["idle"].push_back({longer.steps, longer.rows});
    }
    list.push_back(std::move(one));
  }
  return list;
}

/// What a run came to, for comparisons: losses in nats a token, test as its score.
json figures_json(const RunSummary& summary) {
  json figures = json::object();
  if (summary.best) figures["best"] = summary.best->second;
  if (summary.last) figures["last"] = summary.last->second;
  if (summary.test) figures["test"] = *summary.test;
  if (summary.parameters > 0) figures["parameters"] = summary.parameters;
  if (summary.tokens_per_second) figures["speed"] = *summary.tokens_per_second;
  if (summary.seconds > 0) figures["seconds"] = summary.seconds;
  return figures;
}

}  // namespace

json log_json(const PageRun& run, const RunSummary& summary) {
  json object{{"name", run.source.name},      {"state", name_of(summary.state)}, {"score", summary.score},
              {"step", summary.step},         {"planned", summary.planned},      {"train", train_json(run.log)},
              {"valid", valid_json(run.log)}, {"spans", spans_json(run)},        {"figures", figures_json(summary)},
              {"marks", json::array()}};
  if (run.config) {
    object["tokens_per_step"] = run.config->training.batch * run.config->training.block;
    object["clip"] = run.config->optimizer.clip;
    if (const std::optional<double> guess = run.guess()) object["guess"] = *guess;
  }
  for (const RunMark& mark : run.log.marks()) object["marks"].push_back({{"event", mark.event}, {"step", mark.step}});
  return object;
}

json study_json(const PageRun& run) {
  json object = json::object();
  if (!run.study) return object;
  const CheckpointStudy& study = *run.study;
  if (study.attention) object["attention"] = json_of(*study.attention);
  object["no_attention"] = study.no_attention;
  object["tensors"] = json_of(study.tensors);
  object["gradients"] = gradients_json(run.log.gradients());
  if (study.memories) object["memories"] = memories_json(*study.memories);
  if (study.spans)
    object["spans"] = {{"mean", study.spans->mean_positions},
                       {"most", study.spans->most_positions},
                       {"flops", study.spans->flops_ragged},
                       {"flops_full", study.spans->flops_full}};
  return object;
}

}  // namespace engram
