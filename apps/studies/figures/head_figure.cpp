#include "apps/studies/figures/head_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apps/report/map_panels.hpp"
#include "apps/report/text_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// Weights below this look like nothing.
constexpr double kFaintest = 1e-4;

std::string head_text(const HeadPlace& place) { return text(place.of_slots ? "s" : "", place.head); }

/// Neighbouring weights that are drawn as one column.
struct ColumnBins {
  std::int64_t columns = 0, size = 1;

  ColumnBins(std::int64_t count, std::int64_t most) {
    if (count == 0) return;
    size = (count + most - 1) / std::max<std::int64_t>(1, most);
    columns = (count + size - 1) / size;
  }
  /// The largest of each column.
  std::vector<double> of(const std::vector<double>& weights) const {
    std::vector<double> largest(static_cast<std::size_t>(columns));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t column = i / static_cast<std::size_t>(size);
      if (column < largest.size()) largest[column] = std::max(largest[column], weights[i]);
    }
    return largest;
  }
};

std::int64_t farthest_seen(const HeadFigure& figure) {
  std::int64_t farthest = 0;
  for (const HeadMap& head : figure.heads)
    for (const HeadMapRow& row : head.rows)
      for (std::int64_t i = std::ssize(row.context); i > farthest; --i)
        if (row.context[static_cast<std::size_t>(i - 1)] >= kFaintest) farthest = i;
  return farthest;
}

std::int64_t slots_of(const HeadFigure& figure) {
  std::int64_t slots = 0;
  for (const HeadMap& head : figure.heads)
    for (const HeadMapRow& row : head.rows) slots = std::max(slots, std::ssize(row.slots));
  return slots;
}

std::string title_of(const HeadMap& head) {
  return fmt::format("layer {}, head {}{}", head.place.layer, head.place.head, head.place.of_slots ? " of slots" : "");
}

MapPanel panel_of(const HeadFigure& figure, const HeadMap& head, const ColumnBins& context, const ColumnBins& slots) {
  MapPanel panel;
  panel.title = title_of(head);
  const bool sees_context = std::ranges::any_of(head.rows, [](const HeadMapRow& row) { return !row.context.empty(); });
  const bool sees_slots = std::ranges::any_of(head.rows, [](const HeadMapRow& row) { return !row.slots.empty(); });
  for (const HeadMapRow& row : head.rows) {
    if (sees_context) {
      const std::vector<double> near_first = context.of(row.context);
      panel.left.values.insert(panel.left.values.end(), near_first.rbegin(), near_first.rend());
    }
    if (sees_slots) {
      const std::vector<double> weights = slots.of(row.slots);
      panel.right.values.insert(panel.right.values.end(), weights.begin(), weights.end());
    }
  }
  if (sees_context && context.columns > 0) {
    panel.left.columns = static_cast<std::size_t>(context.columns);
    panel.left.first = fmt::format("{}", figure.nearest + context.columns * context.size - 1);
    panel.left.last = fmt::format("{}", figure.nearest);
  }
  if (sees_slots) {
    panel.right.columns = static_cast<std::size_t>(slots.columns);
    panel.right.first = "0";
    panel.right.last = fmt::format("{}", slots_of(figure) - 1);
  }
  return panel;
}

std::string heads_there(const std::vector<HeadPlace>& found) {
  std::string list;
  for (const HeadPlace& place : found) list += text(list.empty() ? "" : ", ", place.layer, ":", head_text(place));
  return list;
}

}  // namespace

std::vector<HeadPlace> parse_heads(std::string_view written) {
  std::vector<HeadPlace> heads;
  const auto refuse = [written] {
    throw UsageError(text("figure: --heads must be LAYER:HEAD,LAYER:HEAD,... from 0 on, with s before a head of slots ",
                          "alone (1:s0), each once, got '", written, "'"));
  };
  for (std::size_t begin = 0; begin <= written.size();) {
    const std::size_t end = std::min(written.find(',', begin), written.size());
    std::string_view part = written.substr(begin, end - begin);
    begin = end + 1;
    HeadPlace place;
    const std::size_t colon = part.find(':');
    if (colon == part.npos) refuse();
    const auto number = [&refuse](std::string_view digits, std::int64_t& value) {
      const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || rest != digits.data() + digits.size() || value < 0) refuse();
    };
    number(part.substr(0, colon), place.layer);
    part.remove_prefix(colon + 1);
    place.of_slots = part.starts_with('s');
    number(part.substr(place.of_slots ? 1 : 0), place.head);
    if (std::ranges::find(heads, place) != heads.end()) refuse();
    heads.push_back(place);
  }
  return heads;
}

HeadFigure head_figure(TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                       const std::vector<HeadPlace>& heads, std::int64_t rows, const EvaluationWatch& watch) {
  HeadFigure figure{.style = {}, .heads = {}, .tokens = ReadTokens(tokens, trained.vocabulary()), .what = {}};
  figure.by_ratio = trained.config().model.family != ModelFamily::recurrent;
  for (const HeadPlace& place : heads) figure.heads.push_back({.place = place, .rows = {}});
  std::vector<HeadPlace> there;
  const std::int64_t first = std::max<std::int64_t>(0, std::ssize(tokens) - rows);
  figure.nearest = read_heads(
      trained, tokens,
      [&](const HeadQuery& query) {
        if (query.position == 0) there.push_back(query.place);
        const auto head = std::ranges::find(figure.heads, query.place, &HeadMap::place);
        if (head == figure.heads.end() || query.position < first) return;
        head->rows.push_back(
            {query.position, {query.context.begin(), query.context.end()}, {query.slots.begin(), query.slots.end()}});
      },
      watch);
  for (HeadMap& head : figure.heads) {
    if (head.rows.empty())
      throw UsageError(text("figure: --heads must name heads that the model has, got ", head.place.layer, ":",
                            head_text(head.place), "\n  it has ", heads_there(there)));
    for (const HeadMapRow& row : head.rows) {
      for (const double weight : row.slots) head.slot_share += weight / static_cast<double>(head.rows.size());
      for (const std::vector<double>* const weights : {&row.context, &row.slots})
        for (const double weight : *weights) head.most = std::max(head.most, weight);
    }
  }
  figure.what =
      fmt::format("weights of the last {} of {} tokens, by row", figure.heads.front().rows.size(), tokens.size());
  return figure;
}

std::string table_of(const HeadFigure& figure) {
  std::vector<TableColumn> columns{
      {"layer", {}, false}, {"head", {}, false}, {"on slots", {}, false}, {"largest weight", {}, false}};
  for (const HeadMap& head : figure.heads) {
    const std::string cells[] = {fmt::format("{}", head.place.layer), head_text(head.place),
                                 fmt::format("{:.1f}%", 100 * head.slot_share), fmt::format("{:.4f}", head.most)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return figure.what + "\n\n" + aligned(columns);
}

std::string csv_of(const HeadFigure& figure) {
  std::string lines = "layer,head,position,token,kind,index,weight\n";
  for (const HeadMap& head : figure.heads)
    for (const HeadMapRow& row : head.rows) {
      const std::string query = fmt::format("{},{},{},{}", head.place.layer, head_text(head.place), row.position,
                                            csv_field(figure.tokens.token(row.position)));
      for (std::size_t i = row.context.size(); i-- > 0;)
        if (row.context[i] > 0)
          lines += fmt::format("{},context,{},{:.6g}\n", query, static_cast<std::int64_t>(i) + figure.nearest,
                               row.context[i]);
      for (std::size_t n = 0; n < row.slots.size(); ++n)
        if (row.slots[n] > 0) lines += fmt::format("{},slot,{},{:.6g}\n", query, n, row.slots[n]);
    }
  return lines;
}

nlohmann::json json_of(const HeadFigure& figure) {
  nlohmann::json heads = nlohmann::json::array();
  for (const HeadMap& head : figure.heads) {
    nlohmann::json rows = nlohmann::json::array();
    for (const HeadMapRow& row : head.rows)
      rows.push_back({{"position", row.position},
                      {"token", figure.tokens.token(row.position)},
                      {"context", row.context},
                      {"slots", row.slots}});
    heads.push_back({{"layer", head.place.layer},
                     {"head", head.place.head},
                     {"of_slots", head.place.of_slots},
                     {"slot_share", head.slot_share},
                     {"most", head.most},
                     {"rows", std::move(rows)}});
  }
  return {{"what", figure.what}, {"nearest", figure.nearest}, {"heads", std::move(heads)}};
}

std::string svg_of(const HeadFigure& figure) {
  MapPanels maps;
  for (const HeadMapRow& row : figure.heads.front().rows) maps.rows.push_back(figure.tokens.token(row.position));
  for (const HeadMap& head : figure.heads) maps.panels.push_back({.title = title_of(head), .left = {}, .right = {}});
  FigurePage page = page_for_titles(maps, figure.style.page);
  const std::int64_t distances = farthest_seen(figure), slots = slots_of(figure);
  if (distances + slots == 0)
    throw UsageError("figure: the shown queries must look at something, got no weight of 0.0001 or more");
  const auto room = static_cast<std::int64_t>(most_map_columns(page, figure.heads.size()));
  // As wide as its share, so that a column of slots is not thinner than one of distances.
  const std::int64_t for_slots = slots == 0 ? 0 : std::clamp(room * slots / (distances + slots), room / 5, room);
  const ColumnBins context(distances, std::max<std::int64_t>(1, room - (distances == 0 ? room : for_slots)));
  const ColumnBins persistent(slots, std::max<std::int64_t>(1, for_slots));
  maps.row_title = "query";
  maps.left_title = "positions back";
  maps.right_title = "slots";
  maps.scale_title = "weight";
  double most = 10 * kFaintest;
  for (const HeadMap& head : figure.heads) most = std::max(most, head.most);
  maps.scale = {.least = figure.by_ratio ? kFaintest : 0, .most = most, .logarithmic = figure.by_ratio};
  for (std::size_t i = 0; i < figure.heads.size(); ++i)
    maps.panels[i] = panel_of(figure, figure.heads[i], context, persistent);
  page.note = figure.style.plain ? "" : figure.what;
  if (!figure.style.plain && (context.size > 1 || persistent.size > 1))
    page.note += fmt::format("; a column is the largest of {} positions or {} slots", context.size, persistent.size);
  return figure_of_maps(maps, page, page.title.empty() ? figure.what : page.title);
}

}  // namespace engram
