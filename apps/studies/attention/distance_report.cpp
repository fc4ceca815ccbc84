#include "apps/studies/attention/distance_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/report/heat_map.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// More columns would be thinner than a pixel.
constexpr std::int64_t kMostDistanceColumns = 640;
/// Probabilities below this look like nothing.
constexpr double kLeastProbability = 1e-5;

std::string term_text(const std::string& letter) {
  return letter.empty() ? std::string() : fmt::format(", term ({}) alone", letter);
}

std::string window_text(const DistanceReport& report) {
  return report.window == 0 ? std::string() : fmt::format(", in windows of {}, each from nothing", report.window);
}

}  // namespace

std::string table_of(const DistanceReport& report) {
  std::string lines =
      fmt::format("{} tokens read from the start of a text{}{}\n\n{:>5} {:>5} {:>9} {:>10}\n", report.queries,
                  window_text(report), term_text(report.term), "layer", "head", "entropy", "distance");
  for (const HeadDistances& head : report.heads)
    lines += fmt::format("{:>5} {:>5} {:>4.2f} bits {:>10.1f}\n", head.layer, head.head, head.entropy, head.distance);
  return lines + "\n(means over all queries; distance: positions back, 0 being the query's own)\n";
}

std::string csv_of(const DistanceReport& report) {
  std::string lines = "layer,head,distance,probability\n";
  for (const HeadDistances& head : report.heads)
    for (std::size_t distance = 0; distance < head.probability.size(); ++distance)
      if (head.probability[distance] > 0)
        lines += fmt::format("{},{},{},{:.6g}\n", head.layer, head.head, distance, head.probability[distance]);
  return lines;
}

nlohmann::json json_of(const DistanceReport& report) {
  nlohmann::json object{{"tokens", report.queries}, {"heads", nlohmann::json::array()}};
  if (!report.term.empty()) object["term"] = report.term;
  if (report.window > 0) object["window"] = report.window;
  for (const HeadDistances& head : report.heads)
    object["heads"].push_back({{"layer", head.layer},
                               {"head", head.head},
                               {"entropy_bits", head.entropy},
                               {"distance_positions", head.distance},
                               {"probability_by_distance", head.probability}});
  return object;
}

std::string svg_of(const DistanceReport& report) {
  const std::vector<HeadDistances>& heads = report.heads;
  const std::int64_t distances = heads.empty() ? 0 : std::ssize(heads.front().probability);
  if (distances == 0) throw UsageError("attention: --svg draws attention by distance, but nothing was read");
  const std::int64_t size = (distances + kMostDistanceColumns - 1) / kMostDistanceColumns;
  HeatMap map;
  map.title = "Attention by distance" + window_text(report) + term_text(report.term);
  if (size > 1) map.note = fmt::format("the mean of {} neighbouring distances in each cell", size);
  map.row_title = "layer, head";
  map.column_title = "distance, positions back";
  for (std::int64_t first = 0; first < distances; first += size) map.columns.push_back(std::to_string(first));
  double largest = kLeastProbability * 10;
  for (const HeadDistances& head : heads) {
    map.rows.push_back(fmt::format("{}, {}", head.layer, head.head));
    for (std::int64_t first = 0; first < distances; first += size) {
      const std::int64_t end = std::min(first + size, distances);
      double sum = 0;
      for (std::int64_t distance = first; distance < end; ++distance)
        sum += head.probability[static_cast<std::size_t>(distance)];
      map.values.push_back(sum / static_cast<double>(end - first));
      largest = std::max(largest, map.values.back());
    }
  }
  map.scale = {.least = kLeastProbability, .most = largest, .logarithmic = true};
  map.scale_title = "mean probability";
  map.cell_width = std::clamp(960.0 / static_cast<double>(map.columns.size()), 1.5, 24.0);
  map.cell_height = heads.size() > 60 ? 5 : 14;
  SvgCanvas canvas(heat_map_size(map), map.title);
  draw_heat_map(canvas, 0, 0, map);
  return canvas.document();
}

}  // namespace engram
