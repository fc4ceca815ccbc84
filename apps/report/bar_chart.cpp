#include "apps/report/bar_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/report/chart_style.hpp"
#include "apps/report/colour_scale.hpp"
#include "apps/report/ticks.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct BarChartLayout {
  explicit BarChartLayout(const BarChart& chart) {
    const auto count = static_cast<double>(std::max<std::size_t>(1, chart.bars.size()));
    step = std::clamp(480 / count, 8.0, 96.0);
    left = kMargin + 24 + 56;
    top = kMargin + kTitleFont + 14;
    right = left + step * count;
    bottom = top + chart.height;
    size = {std::max(right, kMargin + text_width(chart.title, kTitleFont)) + kMargin, bottom + 44 + kMargin};
  }
  double step = 0;                                  // from bar to bar
  double left = 0, top = 0, right = 0, bottom = 0;  // of the plot
  SvgSize size;
};

}  // namespace

SvgSize bar_chart_size(const BarChart& chart) { return BarChartLayout(chart).size; }

void draw_bar_chart(SvgCanvas& canvas, double x, double y, const BarChart& chart) {
  if (chart.bars.empty()) throw Error("bar chart: there must be bars, got none");
  double largest = 0, widest = 0;
  for (const BarChart::Bar& bar : chart.bars) {
    if (!(bar.value >= 0) || !std::isfinite(bar.value))
      throw Error(text("bar chart: '", bar.name, "' must be 0 or above, got ", bar.value));
    largest = std::max(largest, bar.value);
    widest = std::max(widest, text_width(bar.name, kFont));
  }
  const BarChartLayout at(chart);
  const double tick = tick_step(largest > 0 ? largest : 1, 5);
  const double most = tick * std::max(1.0, std::ceil(largest / tick - 1e-9));
  const auto to_y = [&](double value) { return y + at.bottom - chart.height * value / most; };

  canvas.text(x + kMargin, y + kMargin + kTitleFont - 2, chart.title, {.size = kTitleFont, .bold = true});
  for (const double value : ticks_between(0, most, tick)) {
    canvas.line(x + at.left, to_y(value), x + at.right, to_y(value), value == 0 ? kGrey : kGrid);
    canvas.text(x + at.left - 8, to_y(value) + 4, fmt::format("{:.6g}", value),
                {.anchor = Anchor::end, .colour = kGrey});
  }
  const auto stride = static_cast<std::size_t>(std::max(1.0, std::ceil((widest + 8) / at.step)));
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const BarChart::Bar& bar = chart.bars[i];
    const double left = x + at.left + static_cast<double>(i) * at.step, top = to_y(bar.value);
    canvas.rect(left + 0.1 * at.step, top, 0.8 * at.step, y + at.bottom - top, amount_colour(0.75),
                fmt::format("{}: {:.6g}", bar.name, bar.value));
    // Counted from the right, so that the last bar has its name.
    if ((chart.bars.size() - 1 - i) % stride == 0)
      canvas.text(left + at.step / 2, y + at.bottom + 19, bar.name, {.anchor = Anchor::middle, .colour = kGrey});
  }
  canvas.text(x + (at.left + at.right) / 2, y + at.bottom + 40, chart.x_title,
              {.anchor = Anchor::middle, .bold = true});
  canvas.text(x + kMargin + 12, y + (at.top + at.bottom) / 2, chart.y_title,
              {.anchor = Anchor::middle, .bold = true, .upwards = true});
}

}  // namespace engram
