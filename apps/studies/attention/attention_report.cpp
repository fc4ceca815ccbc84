#include "apps/studies/attention/attention_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/report/heat_map.hpp"
#include "apps/report/text_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// Columns that a map shows on each side of its divider; more would be thinner than a pixel.
constexpr std::int64_t kMostColumns = 480;
/// Weights below this look like nothing.
constexpr double kLeastWeight = 1e-4;

/// Distances that any of the rows looks at.
std::int64_t farthest_distance(const std::vector<AttentionRow>& rows) {
  std::int64_t farthest = 0;
  for (const AttentionRow& row : rows)
    for (std::int64_t i = std::ssize(row.context); i > farthest; --i)
      if (row.context[static_cast<std::size_t>(i - 1)] > 0) farthest = i;
  return farthest;
}

/// Neighbouring columns that are drawn as one.
struct Bins {
  std::int64_t count, size;
  explicit Bins(std::int64_t columns)
      : count(std::min(columns, kMostColumns)), size(count == 0 ? 1 : (columns + count - 1) / count) {
    count = (columns + size - 1) / size;
  }
};

std::string sight_of(const HeadAttention& head) {
  return !head.sees_slots ? "context" : head.sees_context ? "both" : "slots";
}

std::string heads_table(const AttentionReport& report) {
  std::string lines =
      fmt::format("{} tokens read from the start of a text\n\n{:>5} {:>5} {:<8} {:>10} {:>10} {:>9} {:>10}\n",
                  report.tokens.size(), "layer", "head", "sees", "on slots", "on padding", "entropy", "distance");
  for (const HeadAttention& head : report.heads)
    lines += fmt::format("{:>5} {:>5} {:<8} {:>9.1f}% {:>9.1f}% {:>4.2f} bits {:>10.1f}\n", head.layer, head.head,
                         sight_of(head), 100 * head.slot_share, 100 * head.padding_share, head.entropy, head.distance);
  return lines +
         "\n(means over all queries; distance: positions back, of the weight on the context; padding: zero "
         "vectors before the text)\n";
}

std::string slots_table(const AttentionReport& report) {
  if (report.slots.empty()) return "";
  const StudiedHead& head = report.studied;
  std::string lines =
      fmt::format("\nslots that layer {}, head {} uses most, and the tokens that excite them\n", head.layer, head.head);
  for (const SlotUse& use : report.slots) {
    lines += fmt::format("\nslot {:>5}  {:.2f}% of the weight\n", use.slot, 100 * use.share);
    for (const SlotHit& hit : use.hits)
      lines += fmt::format("  {:.4f}  at {:>6}  {}\n", hit.weight, hit.position, report.tokens.around(hit.position));
  }
  return lines;
}

}  // namespace

std::string table_of(const AttentionReport& report) { return heads_table(report) + slots_table(report); }

std::string csv_of(const AttentionReport& report) {
  std::string lines = "position,token,kind,index,weight\n";
  for (const AttentionRow& row : report.rows) {
    const std::string query = fmt::format("{},{}", row.position, csv_field(report.tokens.token(row.position)));
    for (std::size_t i = row.context.size(); i-- > 0;)
      if (row.context[i] > 0) lines += fmt::format("{},context,{},{:.6g}\n", query, i + 1, row.context[i]);
    for (std::size_t n = 0; n < row.slots.size(); ++n)
      if (row.slots[n] > 0) lines += fmt::format("{},slot,{},{:.6g}\n", query, n, row.slots[n]);
  }
  return lines;
}

nlohmann::json json_of(const AttentionReport& report) {
  nlohmann::json object{{"tokens", report.tokens.size()},
                        {"layer", report.studied.layer},
                        {"head", report.studied.head},
                        {"heads", nlohmann::json::array()},
                        {"slots", nlohmann::json::array()}};
  for (const HeadAttention& head : report.heads)
    object["heads"].push_back({{"layer", head.layer},
                               {"head", head.head},
                               {"sees", sight_of(head)},
                               {"slot_share", head.slot_share},
                               {"padding_share", head.padding_share},
                               {"entropy_bits", head.entropy},
                               {"distance_positions", head.distance}});
  for (const SlotUse& use : report.slots) {
    nlohmann::json hits = nlohmann::json::array();
    for (const SlotHit& hit : use.hits)
      hits.push_back(
          {{"position", hit.position}, {"weight", hit.weight}, {"token", report.tokens.token(hit.position)}});
    object["slots"].push_back({{"slot", use.slot}, {"share", use.share}, {"tokens", hits}});
  }
  return object;
}

std::string svg_of(const AttentionReport& report) {
  const std::vector<AttentionRow>& rows = report.rows;
  const std::int64_t distances = farthest_distance(rows);
  const std::int64_t slots = rows.empty() ? 0 : std::ssize(rows.front().slots);
  if (distances + slots == 0)
    throw UsageError("attention: --svg draws what the queries look at, but the shown ones see nothing");
  const Bins context(distances), persistent(slots);
  HeatMap map;
  map.title = fmt::format("Attention of layer {}, head {}{}", report.studied.layer, report.studied.head,
                          report.studied.of_slots ? " of the slots" : "");
  map.note = context.size > 1 || persistent.size > 1
                 ? fmt::format("the largest weight of {} neighbouring positions and {} neighbouring slots in each cell",
                               context.size, persistent.size)
                 : "";
  map.row_title = "query";
  map.column_title = "what it looks at";
  map.left_title = fmt::format("context: {} positions back to 1", distances);
  map.right_title = fmt::format("{} persistent slots", slots);
  if (distances > 0 && slots > 0) map.divider = static_cast<std::size_t>(context.count);
  for (std::int64_t bin = context.count; bin-- > 0;) map.columns.push_back(std::to_string(bin * context.size + 1));
  for (std::int64_t bin = 0; bin < persistent.count; ++bin)
    map.columns.push_back(std::to_string(bin * persistent.size));
  double largest = kLeastWeight * 10;
  for (const AttentionRow& row : rows) {
    map.rows.push_back(fmt::format("{} {}", row.position, report.tokens.token(row.position)));
    const auto largest_of = [&](const std::vector<double>& weights, std::int64_t first, std::int64_t size) {
      double found = 0;
      for (std::int64_t i = first; i < std::min(first + size, std::ssize(weights)); ++i)
        found = std::max(found, weights[static_cast<std::size_t>(i)]);
      largest = std::max(largest, found);
      map.values.push_back(found);
    };
    for (std::int64_t bin = context.count; bin-- > 0;) largest_of(row.context, bin * context.size, context.size);
    for (std::int64_t bin = 0; bin < persistent.count; ++bin)
      largest_of(row.slots, bin * persistent.size, persistent.size);
  }
  map.scale = {.least = kLeastWeight, .most = largest, .logarithmic = true};
  map.scale_title = "weight";
  map.cell_width = std::clamp(900.0 / static_cast<double>(map.columns.size() + 1), 1.5, 24.0);
  map.cell_height = 14;
  SvgCanvas canvas(heat_map_size(map), map.title);
  draw_heat_map(canvas, 0, 0, map);
  return canvas.document();
}

}  // namespace engram
