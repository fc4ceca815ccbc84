/// Drawings: well-formed, with every number where it belongs.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "apps/report/heat_map.hpp"
#include "apps/report/line_chart.hpp"
#include "apps/studies/spans/span_report.hpp"
#include "core/error.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::svg_test {
namespace {

std::vector<std::string> texts_of(const XmlElement& root) {
  std::vector<std::string> texts;
  for (const XmlElement* element : root.all("text")) texts.push_back(element->text);
  return texts;
}

bool has_text(const XmlElement& root, const std::string& wanted) {
  const auto texts = texts_of(root);
  return std::find(texts.begin(), texts.end(), wanted) != texts.end();
}

XmlElement drawn(const HeatMap& map) {
  SvgCanvas canvas(heat_map_size(map), map.title);
  draw_heat_map(canvas, 0, 0, map);
  return read_xml(canvas.document());
}

HeatMap small_map() {
  HeatMap map;
  map.title = "a < b & \"c\"";
  map.row_title = "layer";
  map.column_title = "head";
  map.rows = {"0", "1"};
  map.columns = {"0", "1", "2"};
  map.values = {0, 1, 2, 3, 4, std::numeric_limits<double>::quiet_NaN()};
  map.scale = {0, 4, false};
  map.scale_title = "positions";
  return map;
}

/// The cells lie above the legend; the first rectangle is the ground.
std::vector<const XmlElement*> cells_of(const XmlElement& root, double height) {
  std::vector<const XmlElement*> cells;
  for (const XmlElement* rect : root.all("rect"))
    if (rect->number("height") == height) cells.push_back(rect);
  return cells;
}

}  // namespace

TEST_CASE("texts are escaped, and bytes that XML cannot hold are replaced") {
  CHECK(escaped_xml("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(escaped_xml("\u00e9\u4e2d\n\t") == "\u00e9\u4e2d\n\t");
  CHECK(escaped_xml(std::string_view("\x01\x00", 2)) == "\uFFFD\uFFFD");
  CHECK(escaped_xml("a\xff\x62\xc3") == "a\uFFFDb\uFFFD");
  CHECK(escaped_xml("a\uFFFEb\uFFFF") == "a\uFFFDb\uFFFD");    // no characters of XML
  CHECK(escaped_xml("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");  // a surrogate
  CHECK(escaped_xml("\xc0\x80") == "\uFFFD\uFFFD");            // too long a form
  SvgCanvas canvas({10, 20}, "<name>");
  canvas.text(1, 2, "x & y </text>");
  canvas.rect(0, 0, 1, 1, "\"red", "tip <1>");
  const XmlElement root = read_xml(canvas.document());
  CHECK(root.name == "svg");
  CHECK(root.attributes.at("viewBox") == "0 0 10 20");
  CHECK(root.all("title").front()->text == "<name>");
  CHECK(has_text(root, "x & y </text>"));
  CHECK(root.all("rect").back()->attributes.at("fill") == "\"red");
  CHECK(root.all("rect").back()->children.front().text == "tip <1>");
}

TEST_CASE("colours go from light to dark with the amount") {
  CHECK(amount_colour(0) == "#f6f3e8");
  CHECK(amount_colour(1) == "#1a2c5c");
  CHECK(amount_colour(2) == amount_colour(1));
  CHECK(text_colour_on(0) == "#1a1a1a");
  CHECK(text_colour_on(1) == "#ffffff");
  const Scale ratio{32, 8192, true};
  CHECK(ratio.share_of(32) == 0);
  CHECK(ratio.share_of(512) == Approx(0.5));
  CHECK(ratio.share_of(8192) == 1);
  CHECK(ratio.share_of(1) == 0);
  CHECK(ratio.value_at(0.25) == Approx(128));
  CHECK(Scale{0, 10, false}.share_of(4) == Approx(0.4));
  CHECK(Scale{5, 5, true}.share_of(5) == 1);
}

TEST_CASE("a heat map has its cells, labels, divider and legend") {
  HeatMap map = small_map();
  map.cell_texts = {"0", "1", "2", "3", "4", ""};
  map.row_notes = {"first", "second"};
  map.divider = 2;
  map.left_title = "context";
  map.right_title = "slots";
  const XmlElement root = drawn(map);
  const auto cells = cells_of(root, map.cell_height - 1);
  REQUIRE(cells.size() == 6);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(cells[i]->attributes.at("fill") == amount_colour(static_cast<double>(i) / 4));
  CHECK(cells[5]->attributes.at("fill") == "#e4e4e4");
  // In rows and columns, with a gap before the third column.
  CHECK(cells[1]->number("x") == cells[0]->number("x") + map.cell_width);
  CHECK(cells[2]->number("x") > cells[1]->number("x") + map.cell_width);
  CHECK(cells[3]->number("y") == cells[0]->number("y") + map.cell_height);
  CHECK(cells[3]->number("x") == cells[0]->number("x"));
  for (const char* label : {"layer", "head", "context", "slots", "first", "second", "positions", "a < b & \"c\""})
    CHECK(has_text(root, label));
  // Everything lies inside of the drawing.
  const double width = root.number("width"), height = root.number("height");
  for (const char* element : {"rect", "text"})
    for (const XmlElement* shape : root.all(element)) {
      CHECK(shape->number("x") >= 0);
      CHECK(shape->number("x") < width);
      CHECK(shape->number("y") < height);
    }
  // The line between the two groups.
  const auto lines = root.all("line");
  REQUIRE_FALSE(lines.empty());
  const double divider = lines.front()->number("x1");
  CHECK(divider > cells[1]->number("x") + map.cell_width - 1);
  CHECK(divider < cells[2]->number("x"));
}

TEST_CASE("neighbours of one colour are one shape, and labels do not touch") {
  HeatMap map = small_map();
  map.rows = {"0"};
  map.columns.clear();
  map.values.clear();
  for (int column = 0; column < 400; ++column) {
    map.columns.push_back(std::to_string(column));
    map.values.push_back(column < 100 ? 0 : 4);
  }
  map.divider = 300;
  map.cell_width = 2;
  const XmlElement root = drawn(map);
  const auto cells = cells_of(root, map.cell_height);
  REQUIRE(cells.size() == 3);
  CHECK(cells[0]->number("width") == 200);
  CHECK(cells[1]->number("width") == 400);
  CHECK(cells[2]->number("width") == 200);
  CHECK(has_text(root, "0"));
  CHECK_FALSE(has_text(root, "7"));
  CHECK(has_text(root, "300"));
  CHECK(texts_of(root).size() < 60);
}

TEST_CASE("a heat map whose lists do not fit is refused") {
  HeatMap map = small_map();
  map.values.pop_back();
  CHECK_THAT(message_of<Error>([&] { heat_map_size(map); }),
             ContainsSubstring("2 x 3") && ContainsSubstring("5 values"));
  map = small_map();
  map.tooltips = {"one"};
  CHECK_THROWS_AS(heat_map_size(map), Error);
  map = small_map();
  map.divider = 3;
  CHECK_THROWS_AS(heat_map_size(map), Error);
}

TEST_CASE("a line chart has its points on the scale of its axes") {
  LineChart chart;
  chart.title = "spans";
  chart.x_title = "step";
  chart.y_title = "positions";
  chart.lines = {{"layer 0", {{100, 0}, {200, 50}, {300, 100}}, false}, {"all & more", {{100, 25}}, true}};
  SvgCanvas canvas(line_chart_size(chart), chart.title);
  draw_line_chart(canvas, 0, 0, chart);
  const XmlElement root = read_xml(canvas.document());
  const auto lines = root.all("polyline");
  REQUIRE(lines.size() == 2);
  double x[3], y[3];
  REQUIRE(std::sscanf(lines[0]->attributes.at("points").c_str(), "%lf,%lf %lf,%lf %lf,%lf", &x[0], &y[0], &x[1], &y[1],
                      &x[2], &y[2]) == 6);
  CHECK(x[2] - x[0] == Approx(chart.width));
  CHECK(x[1] - x[0] == Approx(chart.width / 2));
  CHECK(y[0] - y[2] == Approx(chart.height));
  CHECK(y[0] - y[1] == Approx(chart.height / 2));
  CHECK(lines[0]->children.front().text == "layer 0");
  for (const char* label : {"spans", "step", "positions", "layer 0", "all & more", "100", "300", "20", "80"})
    CHECK(has_text(root, label));

  // An axis from 1000 to 1020 shows what one from 0 to 100 does.
  LineChart above = chart;
  above.from_zero = false;
  for (auto& [x_value, y_value] : above.lines[0].points) y_value = 1000 + y_value / 5;
  above.lines[1].points = {{100, 1005}};
  SvgCanvas second(line_chart_size(above), above.title);
  draw_line_chart(second, 0, 0, above);
  const XmlElement moved = read_xml(second.document());
  CHECK(moved.all("polyline")[0]->attributes.at("points") == lines[0]->attributes.at("points"));
  CHECK(has_text(moved, "1000"));
  CHECK_FALSE(has_text(moved, "0"));

  chart.lines[1].points.clear();
  CHECK_THROWS_AS(draw_line_chart(canvas, 0, 0, chart), Error);
  chart.lines.clear();
  CHECK_THROWS_AS(draw_line_chart(canvas, 0, 0, chart), Error);
}

TEST_CASE("the drawing of spans has every head's positions and every layer's line") {
  AllAttentionOptions model;
  model.layers = 2;
  model.heads = 2;
  model.width = 16;
  model.max_span = 100;
  const auto drawn_spans = [&model](std::vector<LayerSpans> layers, const std::string& name,
                                    std::vector<SpanMoment> history = {}) {
    SpanReport report;
    report.name = name;
    report.model = model;
    report.layers = std::move(layers);
    report.history = std::move(history);
    return read_xml(svg_of(report));
  };
  const auto layers = spans_of(model, {{0, 0.25}, {0.501, 1}});
  const auto heads = [](std::int64_t a, std::int64_t b) {
    return std::vector<std::vector<std::int64_t>>{{a, b}, {80, 100}};
  };
  const std::vector<SpanMoment> history{{10, 60, 100, 50, heads(32, 32), 0}, {20, 68, 100, 72, heads(32, 57), 0}};
  const XmlElement root = drawn_spans(layers, "runs/<a> & b", history);
  for (const char* cell : {"32", "57", "83", "100", "32 / 44.5 / 57", "83 / 91.5 / 100", "positions", "layer 1"})
    CHECK(has_text(root, cell));
  CHECK(has_text(root, "Positions that each head sees, runs/<a> & b"));
  CHECK(root.all("polyline").size() == 3);
  bool tooltip = false;
  for (const XmlElement* title : root.all("title"))
    tooltip = tooltip || title->text == "layer 0, head 1: zeta 0.25000, 57 positions";
  CHECK(tooltip);
  CHECK(drawn_spans(layers, "a").all("polyline").empty());

  model.span = SpanKind::fixed;
  const XmlElement fixed = drawn_spans(spans_of(model, {}), "a");
  CHECK(has_text(fixed, "fixed spans: every head sees S = 100 positions"));
  const auto texts = texts_of(fixed);
  CHECK(std::count(texts.begin(), texts.end(), "100") >= 4);
}

}  // namespace engram::harness::svg_test
