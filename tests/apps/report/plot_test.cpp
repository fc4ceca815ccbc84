/// Figures for papers: axes, points where they belong, what spreads, and maps beside each other.

#include "apps/report/plot.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "apps/report/figure_page.hpp"
#include "apps/report/map_panels.hpp"
#include "core/error.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::plot_test {
namespace {

AxisScale scale_of(const PlotAxis& axis, PlotRange data, double length = 200) {
  return {axis, data, length, [](const std::string& label) { return 6.0 * static_cast<double>(label.size()); }};
}

std::vector<std::string> labels_of(const AxisScale& scale) {
  std::vector<std::string> labels;
  for (const AxisScale::Tick& tick : scale.ticks())
    if (!tick.label.empty()) labels.push_back(tick.label);
  return labels;
}

/// Two series of three points; the first spreads.
Plot small_plot() {
  Plot plot;
  plot.x.title = "slots";
  plot.y.title = "bits & more";
  plot.series = {
      {.name = "a", .points = {{.x = 0, .y = 2}, {.x = 50, .y = 1.5, .up = PlotRange{1.25, 2}}, {.x = 100, .y = 1}}},
      {.name = "b", .points = {{.x = 0, .y = 1}, {.x = 100, .y = 2}}}};
  return plot;
}

XmlElement drawn(const std::vector<Plot>& plots, const FigurePage& page = {}) {
  return read_xml(figure_of_plots(plots, page, "a <name>"));
}

bool says(const XmlElement& root, const std::string& wanted) {
  for (const XmlElement* element : root.all("text"))
    if (element->text == wanted) return true;
  return false;
}

std::vector<std::pair<double, double>> points_in(const XmlElement& polyline) {
  std::vector<std::pair<double, double>> points;
  const std::string list = polyline.attributes.at("points");
  const char* at = list.c_str();
  double x = 0, y = 0;
  for (int length = 0; std::sscanf(at, "%lf,%lf%n", &x, &y, &length) == 2; at += length) points.emplace_back(x, y);
  return points;
}

}  // namespace

TEST_CASE("plot: numbers of axes are short, and say what they are") {
  CHECK(axis_number(0) == "0");
  CHECK(axis_number(0.25) == "0.25");
  CHECK(axis_number(20000) == "20000");
  CHECK(axis_number(100000) == "100k");
  CHECK(axis_number(2.5e6) == "2.5M");
  CHECK(axis_number(262144) == "262144");
  CHECK(axis_number(1e-4) == "0.0001");
  CHECK(axis_number(1e-5) == "1e-5");
  CHECK(axis_number(2.5e-12) == "2.5e-12");
  CHECK(axis_number(-3) == "-3");
}

TEST_CASE("plot: axes have room for all points, round ticks, and places by difference or ratio") {
  const AxisScale plain = scale_of({.title = "a"}, {0, 100});
  CHECK(plain.range().first == Approx(-4));
  CHECK(plain.range().second == Approx(104));
  CHECK(plain.share(50) == Approx(0.5));
  CHECK(labels_of(plain) == std::vector<std::string>{"0", "50", "100"});
  const AxisScale zero = scale_of({.title = "a", .from_zero = true}, {60, 100});
  CHECK(zero.range().first == 0);
  const AxisScale ratio = scale_of({.title = "a", .logarithmic = true}, {1, 10000});
  CHECK(ratio.share(100) == Approx(0.5));
  CHECK(labels_of(ratio) == std::vector<std::string>{"1", "10", "100", "1000", "10000"});
  CHECK(ratio.ticks().size() == 13);  // 2 and 5 between them are small
  const AxisScale wanted = scale_of({.title = "a", .logarithmic = true, .ticks = {64, 256, 1024}}, {64, 1024});
  CHECK(labels_of(wanted) == std::vector<std::string>{"64", "256", "1024"});
  const AxisScale close = scale_of({.title = "a", .ticks = {1000, 1001, 1002, 2000}}, {1000, 2000}, 60);
  CHECK(labels_of(close) == std::vector<std::string>{"1000", "1500", "2000"});  // those wanted would lie on each other
  const AxisScale given = scale_of({.title = "a", .range = PlotRange{1, 2}}, {0, 50});
  CHECK(given.share(1.5) == Approx(0.5));
  CHECK(scale_of({.title = "a"}, {7, 7}).share(7) == Approx(0.5));
  CHECK_THROWS_AS(scale_of({.title = "a", .logarithmic = true}, {0, 1}), Error);
}

TEST_CASE("plot: points, whiskers and lines lie where the axes say") {
  const XmlElement root = drawn({small_plot()}, {.width = 300, .height = 200, .font = 8, .note = "mean of 2 seeds"});
  CHECK(root.name == "svg");
  CHECK(root.attributes.at("width") == "105.83mm");  // 300 points
  CHECK(root.all("title").front()->text == "a <name>");
  const auto lines = root.all("polyline");  // the legend's two, the axes, the two series
  REQUIRE(lines.size() == 5);
  const auto axes = points_in(*lines[2]), first = points_in(*lines[3]), second = points_in(*lines[4]);
  REQUIRE(axes.size() == 3);
  const double left = axes[0].first, top = axes[0].second, bottom = axes[1].second, right = axes[2].first;
  const auto x_of = [&](double value) { return left + (right - left) * (value + 4) / 108; };
  const auto y_of = [&](double value) { return bottom - (bottom - top) * (value - 0.96) / 1.08; };
  REQUIRE(first.size() == 3);
  CHECK(first[1].first == Approx(x_of(50)).margin(0.02));
  CHECK(first[1].second == Approx(y_of(1.5)).margin(0.02));
  CHECK(second[1].first == Approx(x_of(100)).margin(0.02));
  CHECK(second[1].second == Approx(y_of(2)).margin(0.02));
  // The second series has another colour, and dashes for those who cannot see it.
  CHECK(lines[3]->attributes.at("stroke") != lines[4]->attributes.at("stroke"));
  CHECK_FALSE(lines[3]->attributes.contains("stroke-dasharray"));
  CHECK(lines[4]->attributes.contains("stroke-dasharray"));
  // Circles are the first series' markers, the legend's before them.
  const auto circles = root.all("circle");
  REQUIRE(circles.size() == 4);
  CHECK(circles[2]->number("cx") == Approx(x_of(50)).margin(0.02));
  CHECK(circles[2]->children.front().text == "a, 50: 1.5");
  bool whisker = false;
  for (const XmlElement* line : root.all("line"))
    whisker =
        whisker || (std::abs(line->number("x1") - x_of(50)) < 0.02 && std::abs(line->number("x2") - x_of(50)) < 0.02 &&
                    std::abs(line->number("y1") - y_of(1.25)) < 0.02 && std::abs(line->number("y2") - y_of(2)) < 0.02);
  CHECK(whisker);
  for (const char* label : {"slots", "bits & more", "a", "b", "mean of 2 seeds", "0", "100"}) CHECK(says(root, label));
  for (const XmlElement* text : root.all("text")) {
    CHECK(text->number("x") >= 0);
    CHECK(text->number("x") <= 300);
  }
  CHECK(figure_of_plots({small_plot()}, {}, "a") == figure_of_plots({small_plot()}, {}, "a"));
}

TEST_CASE("plot: bars stand on zero, names below them, and one series needs no legend") {
  Plot plot;
  plot.bars = true;
  plot.y.title = "perplexity";
  plot.y.from_zero = true;
  plot.x.names = {"N = 0", "N = 16"};
  plot.series = {{.name = "only", .points = {{.x = 0, .y = 4}, {.x = 1, .y = 2, .up = PlotRange{1, 3}}}}};
  const XmlElement root = drawn({plot}, {.width = 200, .height = 150});
  const auto rects = root.all("rect");  // the ground, then bars
  REQUIRE(rects.size() == 3);
  CHECK(rects[1]->number("height") == Approx(2 * rects[2]->number("height")).margin(0.02));
  CHECK(rects[1]->number("y") + rects[1]->number("height") ==
        Approx(rects[2]->number("y") + rects[2]->number("height")).margin(0.02));
  CHECK(rects[2]->children.front().text == "only, N = 16: 2");
  CHECK(says(root, "N = 0"));
  CHECK_FALSE(says(root, "only"));
  plot.x.names = {"a name that is far too long for its bar", "another such name"};
  bool slanted = false;
  const XmlElement named = drawn({plot}, {.width = 200, .height = 150});
  for (const XmlElement* text : named.all("text"))
    slanted = slanted ||
              (text->attributes.contains("transform") && text->attributes.at("transform").starts_with("rotate(-35 "));
  CHECK(slanted);
}

TEST_CASE("plot: slanted names are whole where there is room, shortened where there is none, and never cut off") {
  const auto slanted_names = [](const std::vector<std::string>& names, double width, double height) {
    Plot plot;
    plot.x.names = names;
    plot.series = {{.name = "", .points = {}}};
    for (std::size_t i = 0; i < names.size(); ++i)
      plot.series[0].points.push_back({.x = static_cast<double>(i), .y = static_cast<double>(i)});
    std::vector<std::string> said;
    const XmlElement root = drawn({plot}, {.width = width, .height = height});
    for (const XmlElement* text : root.all("text")) {
      if (!text->attributes.contains("transform") || !text->attributes.at("transform").starts_with("rotate(-35 "))
        continue;
      const double size = text->number("font-size"), turn = 35 * std::numbers::pi / 180;
      const double length = printed_width(text->text, size);
      INFO(text->text);
      // The top of the first letter is the leftmost point, its foot the lowest one.
      CHECK(text->number("x") - length * std::cos(turn) - 0.75 * size * std::sin(turn) >= 0);
      CHECK(text->number("y") + length * std::sin(turn) <= height);
      CHECK(text->number("x") <= width);
      said.push_back(text->text);
    }
    return said;
  };
  // Those of a study.
  const std::vector<std::string> differences = {"memory-relative - relative", "memory-shaw - shaw",
                                                "memory-relative - memory-shaw", "relative - shaw",
                                                "relative - sinusoidal"};
  CHECK(slanted_names(differences, 340, 260) == differences);
  // The longest is not the first.
  const std::vector<std::string> late = {"none", "transformer-6-layers - all", "a", "b", "c", "d", "e", "f", "g"};
  CHECK(slanted_names(late, 340, 260) == late);
  const std::vector<std::string> shortened =
      slanted_names({"größer und größer und größer und größer und größer als alle anderen", "klein"}, 150, 150);
  REQUIRE(shortened.size() == 2);
  CHECK_THAT(shortened[0], StartsWith("größer und ") && EndsWith("…"));
  CHECK(shortened[1] == "klein");
}

TEST_CASE("plot: the title of a y axis is set smaller where its panel is low, then shortened") {
  const std::string title = "tokens a second, training, of a stream";
  const auto title_in = [](const std::string& written, double height) {
    Plot plot = small_plot();
    plot.y.title = written;
    const XmlElement root = drawn({plot}, {.width = 200, .height = height});
    for (const XmlElement* text : root.all("text"))
      if (text->text.starts_with("tokens")) return std::tuple(text->text, text->number("font-size"), text->number("y"));
    return std::tuple(std::string(), 0.0, 0.0);
  };
  const auto [high, high_size, high_y] = title_in(title, 200);
  CHECK(high_size == 8);
  const auto [low, low_size, low_y] = title_in(title, 110);
  CHECK(high == title);
  CHECK(low == title);
  CHECK(low_size < 8);
  const auto [lowest, lowest_size, y] = title_in(title + ", " + title, 110);
  CHECK(lowest_size == Approx(0.6 * 8));
  CHECK_THAT(lowest, EndsWith("…"));
  CHECK(y >= printed_width(lowest, lowest_size) / 2);
}

TEST_CASE("plot: panels lie side by side, what lies outside of a given range is cut off") {
  Plot cut = small_plot();
  cut.y.range = PlotRange{1.4, 1.6};
  const XmlElement root = drawn({small_plot(), cut, small_plot()}, {.width = 600, .columns = 2});
  REQUIRE(root.all("svg").size() == 1);
  const XmlElement& view = *root.all("svg").front();
  CHECK(view.all("polyline").size() == 2);
  CHECK(view.number("x") > 300);
  CHECK(view.number("x") + view.number("width") <= 600);
}

TEST_CASE("plot: long lines are thinned, bands follow them, and what is no number is refused") {
  Plot plot;
  plot.bands = true;
  plot.series = {{.name = "a", .points = {}}};
  for (int i = 0; i < 10000; ++i)
    plot.series[0].points.push_back(
        {.x = static_cast<double>(i), .y = i == 5001 ? 50.0 : 1.0, .up = PlotRange{0.5, 1.5}});
  const XmlElement root = drawn({plot});
  const auto points = points_in(*root.all("polyline").back());
  CHECK(points.size() <= 1200);
  CHECK(points.size() > 100);
  double highest = 1e9;
  for (const auto& [x, y] : points) highest = std::min(highest, y);
  CHECK(highest < points.front().second - 50);  // the peak is there
  CHECK(root.all("polygon").size() == 1);
  CHECK(root.all("circle").empty());
  plot.series[0].points = {{.x = 0, .y = std::numeric_limits<double>::quiet_NaN()}};
  CHECK_THROWS_AS(drawn({plot}), Error);
  plot.series[0].points.clear();
  CHECK_THROWS_AS(drawn({plot}), Error);
  CHECK_THROWS_AS(figure_of_plots({}, {}, "a"), Error);
}

TEST_CASE("plot: a panel that its labels fill is refused, and of many names only some are written") {
  CHECK_THAT(message_of<UsageError>([] { drawn({small_plot()}, {.width = 60, .font = 40}); }),
             ContainsSubstring("must have room beside its labels"));
  Plot plot;
  plot.bars = true;
  plot.series = {{.name = "", .points = {}}};
  for (int i = 0; i < 200; ++i) {
    plot.x.names.push_back("variant-" + std::to_string(i));
    plot.series[0].points.push_back({.x = static_cast<double>(i), .y = 1});
  }
  const XmlElement root = drawn({plot});
  CHECK(says(root, "variant-0"));
  CHECK_FALSE(says(root, "variant-1"));
  CHECK(root.all("rect").size() == 201);
}

TEST_CASE("plot: labels of points keep off each other") {
  Plot plot;
  plot.series = {{.name = "",
                  .points = {{.x = 1, .y = 1, .label = "first"}, {.x = 1.001, .y = 1, .label = "second"}},
                  .joined = false}};
  const XmlElement root = drawn({plot});
  const XmlElement *first = nullptr, *second = nullptr;
  for (const XmlElement* text : root.all("text")) {
    if (text->text == "first") first = text;
    if (text->text == "second") second = text;
  }
  REQUIRE((first != nullptr && second != nullptr));
  CHECK(std::abs(first->number("x") - second->number("x")) + std::abs(first->number("y") - second->number("y")) > 6);
}

TEST_CASE("maps: panels share one scale, context and slots stand apart") {
  MapPanels maps;
  maps.rows = {"a", "b"};
  maps.row_title = "query";
  maps.left_title = "positions back";
  maps.right_title = "slots";
  maps.scale = {.least = 1e-4, .most = 1, .logarithmic = true};
  maps.scale_title = "weight";
  maps.panels = {
      {.title = "layer 0, head 1",
       .left = {.columns = 3, .values = {1, 1, 0, 0, 0, 0.01}, .first = "3", .last = "1"},
       .right = {.columns = 2, .values = {0, 1, 0, 0}, .first = "0", .last = "1"}},
      {.title = "layer 2, head 0", .left = {.columns = 1, .values = {1, 0}, .first = "1", .last = "1"}, .right = {}}};
  const FigurePage page{.width = 300, .height = 60, .font = 8};
  const XmlElement root = read_xml(figure_of_maps(maps, page, "maps"));
  for (const char* label :
       {"query", "positions back", "slots", "weight", "layer 0, head 1", "layer 2, head 0", "a", "b"})
    CHECK(says(root, label));
  // Equal neighbours are one shape; both panels' ones have the darkest colour.
  std::vector<std::string> dark;
  for (const XmlElement* path : root.all("path"))
    if (path->attributes.at("fill") == amount_colour(1)) dark.push_back(path->attributes.at("d"));
  REQUIRE(dark.size() == 3);
  double x = 0, y = 0, wide = 0, high = 0;
  REQUIRE(std::sscanf(dark[0].c_str(), "M%lf,%lfh%lfv%lf", &x, &y, &wide, &high) == 4);
  CHECK(high == Approx(30).margin(0.15));
  double other_x = 0, other_wide = 0;
  REQUIRE(std::sscanf(dark[2].c_str(), "M%lf,%lfh%lf", &other_x, &y, &other_wide) == 3);
  CHECK(other_x > x + wide);
  CHECK(dark[0].find('M', 1) == std::string::npos);
  for (const char* label : {"0.0001", "0.01", "1"}) CHECK(says(root, label));
  maps.scale = {.least = 0, .most = 0.43};
  const XmlElement plain = read_xml(figure_of_maps(maps, page, "maps"));
  for (const char* label : {"0", "0.2", "0.4"}) CHECK(says(plain, label));
  maps.panels[0].left.values.pop_back();
  CHECK_THROWS_AS(figure_of_maps(maps, page, "maps"), Error);
  maps.panels = {{.title = "none", .left = {}, .right = {}}};
  CHECK_THROWS_AS(figure_of_maps(maps, page, "maps"), Error);
}

}  // namespace engram::harness::plot_test
