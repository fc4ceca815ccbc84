#include "apps/studies/figures/offset_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "apps/studies/attention/head_reading.hpp"
#include "core/error.hpp"

namespace engram {

ModelOffsets offsets_of(std::string name, const WindowMeans& means) {
  if (means.positions() == 0)
    throw UsageError(text("figure: means are over positions whose window of ", means.window(), " is full, but '", name,
                          "' had none in what it read"));
  ModelOffsets model{
      .name = std::move(name), .offsets = {}, .weights = means.weights(), .positions = means.positions()};
  for (std::int64_t column = 0; column < means.window(); ++column)
    model.offsets.push_back(static_cast<double>(means.offset(column)));
  return model;
}

ModelOffsets mean_offsets(std::string name, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                          const EvaluationWatch& watch) {
  const std::int64_t half = std::ssize(tokens) / 2;
  std::vector<double> sums;  // by distance
  std::int64_t queries = 0, positions = 0;
  const std::int64_t nearest = read_heads(
      trained, tokens,
      [&](const HeadQuery& query) {
        if (query.position < half || query.place.of_slots) return;
        ++queries;
        if (query.place == HeadPlace{}) ++positions;
        // A query at position p has p before it, and itself.
        const auto reach = std::min<std::size_t>(query.context.size(), static_cast<std::size_t>(query.position) + 1);
        if (sums.size() < reach) sums.resize(reach);
        for (std::size_t i = 0; i < reach; ++i) sums[i] += query.context[i];
      },
      watch);
  while (!sums.empty() && sums.back() == 0) sums.pop_back();
  ModelOffsets model{.name = std::move(name), .offsets = {}, .weights = {}, .positions = positions};
  for (std::size_t i = sums.size(); i-- > 0;) {
    model.offsets.push_back(-static_cast<double>(nearest + static_cast<std::int64_t>(i)));
    model.weights.push_back(sums[i] / static_cast<double>(std::max<std::int64_t>(1, queries)));
  }
  return model;
}

Figure offset_figure(const std::vector<ModelOffsets>& models) {
  Figure figure;
  Plot plot;
  plot.x.title = "offset, positions";
  plot.y.title = "mean weight";
  plot.y.from_zero = true;
  std::set<double> offsets;
  for (const ModelOffsets& model : models) {
    PlotSeries series{.name = model.name, .points = {}};
    for (std::size_t i = 0; i < model.offsets.size(); ++i) {
      series.points.push_back({.x = model.offsets[i], .y = model.weights[i], .across = {}, .up = {}});
      offsets.insert(model.offsets[i]);
    }
    if (series.points.empty()) figure.left_out.push_back(model.name + ": no weight on the text");
    plot.series.push_back(std::move(series));
  }
  // Windows are short: each offset has its number.
  constexpr std::size_t kFew = 20;
  if (offsets.size() <= kFew) plot.x.ticks.assign(offsets.begin(), offsets.end());
  figure.panels.push_back(std::move(plot));
  const auto [least, most] = std::ranges::minmax(models, {}, &ModelOffsets::positions);
  figure.what = least.positions == most.positions
                    ? fmt::format("mean over {} positions", most.positions)
                    : fmt::format("mean over {} to {} positions", least.positions, most.positions);
  return figure;
}

}  // namespace engram
