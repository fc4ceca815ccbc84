#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/report/chart_style.hpp"
#include "apps/report/colour_scale.hpp"
#include "apps/report/svg_canvas.hpp"
#include "apps/report/ticks.hpp"
#include "apps/studies/product_keys/product_key_report.hpp"

namespace engram {
namespace {

constexpr double kWidth = 640, kHeight = 400;
constexpr double kLeft = kMargin + 24 + 72, kTop = kMargin + kTitleFont + 18 + 26, kLegendEntry = 68;
constexpr double kRight = kLeft + kWidth, kBottom = kTop + kHeight, kLegendLeft = kRight + 24, kMark = 8;
constexpr std::string_view kEven = "every slot alike: 1 / slots";

struct Axes {
  explicit Axes(const ProductKeyReport& report) {
    const auto slots = static_cast<double>(report.rows.front().metrics.slots);
    ranks = {1, std::max(slots, 10.0), true};
    // Weights fall to nothing at the end of a line: four powers of ten below even use say no more.
    double least = 1 / slots, most = 1 / slots;
    for (const ProductKeyReport::Row& row : report.rows) {
      least = std::min(least, std::max(row.shares.back(), 1e-4 / slots));
      most = std::max(most, row.shares.front());
    }
    shares = {std::pow(10, std::floor(std::log10(least) + 1e-9)), std::pow(10, std::ceil(std::log10(most) - 1e-9)),
              true};
    if (!(shares.most > shares.least)) shares.least /= 10;
  }
  double x(double rank) const { return kLeft + kWidth * ranks.share_of(rank); }
  double y(double share) const { return kBottom - kHeight * shares.share_of(share); }

  Scale ranks, shares;
};

/// 1, 10, 1,000, 100,000: as people write numbers.
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

/// A share as a percentage, without a power of ten as far as it can be read without.
std::string percentage(double share) {
  const double percent = 100 * share;
  return percent >= 0.9e-5
             ? fmt::format("{:.{}f}%", percent, std::max(0, static_cast<int>(-std::floor(std::log10(percent) + 1e-9))))
             : fmt::format("{:.0e}%", percent);
}

void draw_axes(SvgCanvas& canvas, const Axes& axes) {
  for (const double share : powers_of_ten_between(axes.shares.least, axes.shares.most, 0.01)) {
    canvas.line(kLeft, axes.y(share), kRight, axes.y(share), kGrid);
    canvas.text(kLeft - 8, axes.y(share) + 4, percentage(share), {.anchor = Anchor::end, .colour = kGrey});
  }
  for (const double rank : powers_of_ten_between(1, axes.ranks.most, 0.01)) {
    canvas.line(axes.x(rank), kTop, axes.x(rank), kBottom + 5, kGrid);
    canvas.text(axes.x(rank), kBottom + 19, grouped(rank), {.anchor = Anchor::middle, .colour = kGrey});
  }
  canvas.line(kLeft, kBottom, kRight, kBottom, kGrey);
  canvas.line(kLeft, kTop, kLeft, kBottom, kGrey);
  canvas.text((kLeft + kRight) / 2, kBottom + 40,
              "rank of the slot, by its weight; a line ends where slots were not read",
              {.anchor = Anchor::middle, .bold = true});
  canvas.text(kMargin + 12, (kTop + kBottom) / 2, "share of all weight",
              {.anchor = Anchor::middle, .bold = true, .upwards = true});
}

void draw_line(SvgCanvas& canvas, const Axes& axes, const ProductKeyReport::Row& row, const std::string& colour) {
  std::vector<SvgCanvas::Point> points;
  constexpr std::int64_t kPoints = 500;
  for (const std::int64_t rank : thinned_ranks(static_cast<std::int64_t>(row.shares.size()), kPoints)) {
    const double share = row.shares[static_cast<std::size_t>(rank - 1)];
    points.emplace_back(axes.x(static_cast<double>(rank)), axes.y(share));
    if (share < axes.shares.least) break;
  }
  if (points.size() == 1) points = {{points[0].first, points[0].second}, {points[0].first + 4, points[0].second}};
  canvas.polyline(points, colour, 2, "memory " + row.name());
  const std::pair<const char*, std::int64_t> marks[] = {
      {"50%", row.metrics.half_mass}, {"90%", row.metrics.most_mass}, {"99%", row.metrics.nearly_all_mass}};
  for (const auto& [share, rank] : marks) {
    const double x = axes.x(static_cast<double>(rank)), y = axes.y(row.shares[static_cast<std::size_t>(rank - 1)]);
    canvas.rect(x - kMark / 2, y - kMark / 2, kMark, kMark, colour,
                fmt::format("{} of the weight in {} slots", share, grouped(static_cast<double>(rank))));
  }
}

std::vector<std::string> legend_of(const ProductKeyReport::Row& row) {
  const ProductKeyUsage::Metrics& found = row.metrics;
  return {row.layer > 0 ? fmt::format("memory of layer {}", row.layer) : std::string("the table, by all memories"),
          fmt::format("usage {:.1f}%, top-1 {:.1f}%, KL {:.3f}", 100 * found.usage, 100 * found.top_usage, found.kl),
          fmt::format("half of the weight in {} slots", grouped(static_cast<double>(found.half_mass)))};
}

}  // namespace

std::string svg_of(const ProductKeyReport& report) {
  const Axes axes(report);
  const std::int64_t slots = report.rows.front().metrics.slots;
  const std::string title = "How evenly memories use their slots";
  const std::string note =
      fmt::format("{} slots, {} positions of the split {}; left of the squares lie 50, 90 and 99% of the weight",
                  grouped(static_cast<double>(slots)),
                  grouped(static_cast<double>(report.rows.front().metrics.positions)), report.split);
  double legend = text_width(kEven, kFont);
  for (const ProductKeyReport::Row& row : report.rows)
    for (const std::string& line : legend_of(row)) legend = std::max(legend, text_width(line, kFont));
  const double legend_bottom = kTop + 40 + kLegendEntry * static_cast<double>(report.rows.size());
  SvgCanvas canvas({kLegendLeft + kLegendMark + 8 + legend + kMargin, std::max(kBottom + 44, legend_bottom) + kMargin},
                   title);
  canvas.text(kMargin, kMargin + kTitleFont - 2, title, {.size = kTitleFont, .bold = true});
  canvas.text(kMargin, kMargin + kTitleFont + 18, note, {.size = kFont, .colour = kGrey});
  draw_axes(canvas, axes);

  const double even = 1 / static_cast<double>(slots);
  canvas.polyline({{axes.x(1), axes.y(even)}, {axes.x(static_cast<double>(slots)), axes.y(even)}}, kBlack, 2.5, kEven);
  canvas.line(kLegendLeft, kTop + 6, kLegendLeft + kLegendMark, kTop + 6, kBlack, 2.5);
  canvas.text(kLegendLeft + kLegendMark + 8, kTop + 10, kEven);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ProductKeyReport::Row& row = report.rows[i];
    const std::string colour =
        line_colour(static_cast<double>(i) / std::max(1.0, static_cast<double>(report.rows.size() - 1)));
    draw_line(canvas, axes, row, colour);
    const double top = kTop + 40 + kLegendEntry * static_cast<double>(i);
    canvas.line(kLegendLeft, top, kLegendLeft + kLegendMark, top, colour, 2);
    double below = 4;
    for (const std::string& line : legend_of(row)) {
      canvas.text(kLegendLeft + kLegendMark + 8, top + below, line, {.colour = below < 5 ? kBlack : kGrey});
      below += 17;
    }
  }
  return canvas.document();
}

}  // namespace engram
