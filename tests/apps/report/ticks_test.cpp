#include "apps/report/ticks.hpp"

#include <cmath>
#include <limits>

#include "apps/report/line_chart.hpp"
#include "apps/report/svg_canvas.hpp"
#include "tests/harness/catch.hpp"

namespace engram::ticks_test {
namespace {

TEST_CASE("ticks are round numbers, few enough for an axis") {
  CHECK(tick_step(8192, 5) == 2000);
  CHECK(tick_step(1, 5) == Approx(0.2));
  CHECK(tick_step(100, 5) == 20);
  CHECK(tick_step(45, 5) == 10);
  CHECK(ticks_between(-1, 7, 2) == std::vector<double>{0, 2, 4, 6});
  CHECK(ticks_between(-4, 6, 5) == std::vector<double>{0, 5});
  CHECK_FALSE(std::signbit(ticks_between(-0.1, 1, 1).front()));
  CHECK(ticks_between(0, 0.3, 0.1).size() == 4);  // though 3 times 0.1 is more than 0.3
  CHECK(powers_of_ten_between(0.5, 1000) == std::vector<double>{1, 10, 100, 1000});
  CHECK(powers_of_ten_between(3, 8).empty());
}

TEST_CASE("ticks end where a step is lost in the numbers, or there is no end") {
  const double huge = 1e17, infinite = std::numeric_limits<double>::infinity();
  CHECK(ticks_between(huge, huge + 64, 1).size() == 1);
  CHECK(ticks_between(0, 1e9, 1).size() == kMostTicks);
  CHECK(ticks_between(0, infinite, 1).size() == kMostTicks);
  CHECK(ticks_between(-huge, huge, infinite).empty());
  CHECK(powers_of_ten_between(1e-300, infinite).size() == kMostTicks);
  CHECK(powers_of_ten_between(1e300, infinite).size() == 9);
}

TEST_CASE("a line chart of steps so large that neighbours are one number is drawn") {
  for (const double step : {1e17, 1e300}) {
    LineChart chart;
    chart.title = chart.x_title = chart.y_title = "t";
    chart.lines = {{"a", {{step, step}, {std::nextafter(step, 2 * step), std::nextafter(step, 2 * step)}}}};
    SvgCanvas canvas = SvgCanvas::on_paper(line_chart_size(chart), "t");
    draw_line_chart(canvas, 0, 0, chart);
    CHECK(canvas.document().size() < 20'000);
  }
}

}  // namespace
}  // namespace engram::ticks_test
