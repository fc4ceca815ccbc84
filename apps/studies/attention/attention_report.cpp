#include "apps/studies/attention/attention_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/report/heat_map.hpp"
#include "apps/report/text_table.hpp"
#include "core/error.hpp"

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

std::string visible(std::string token) {
  std::string shown;
  for (const char byte : token)
    shown += byte == '\n' ? "\u23ce" : byte == '\t' ? "\u21e5" : byte == ' ' ? "\u2423" : std::string(1, byte);
  return shown;
}

}  // namespace

ReadTokens::ReadTokens(const std::vector<std::int32_t>& tokens, const data::Vocabulary& vocabulary)
    : words_(vocabulary.kind() == data::TokenKind::word) {
  for (const std::int32_t token : tokens) tokens_.push_back(visible(vocabulary.decode(std::array{token})));
}

std::string ReadTokens::around(std::int64_t position) const {
  std::string shown;
  const std::int64_t before = words_ ? 6 : 24;
  for (std::int64_t at = std::max<std::int64_t>(0, position - before); at < position; ++at)
    shown += token(at) + (words_ ? " " : "");
  return shown + "[" + token(position) + "]";
}

std::string attention_csv(const std::vector<AttentionRow>& rows, const ReadTokens& tokens) {
  std::string lines = "position,token,kind,index,weight\n";
  for (const AttentionRow& row : rows) {
    const std::string query = fmt::format("{},{}", row.position, csv_field(tokens.token(row.position)));
    for (std::size_t i = row.context.size(); i-- > 0;)
      if (row.context[i] > 0) lines += fmt::format("{},context,{},{:.6g}\n", query, i + 1, row.context[i]);
    for (std::size_t n = 0; n < row.slots.size(); ++n)
      if (row.slots[n] > 0) lines += fmt::format("{},slot,{},{:.6g}\n", query, n, row.slots[n]);
  }
  return lines;
}

std::string attention_svg(const std::vector<AttentionRow>& rows, const ReadTokens& tokens, std::string_view head) {
  const std::int64_t distances = farthest_distance(rows);
  const std::int64_t slots = rows.empty() ? 0 : std::ssize(rows.front().slots);
  if (distances + slots == 0)
    throw UsageError("attention: --svg draws what the queries look at, but the shown ones see nothing");
  const Bins context(distances), persistent(slots);
  HeatMap map;
  map.title = fmt::format("Attention of {}", head);
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
    map.rows.push_back(fmt::format("{} {}", row.position, tokens.token(row.position)));
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
