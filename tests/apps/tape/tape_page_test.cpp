/// What is made of a recording: JSON, the drawing, the page.

#include "apps/tape/tape_page.hpp"

#include <algorithm>
#include <string>

#include "apps/tape/tape_differences.hpp"
#include "apps/tape/tape_graph.hpp"
#include "apps/tape/tape_json.hpp"
#include "core/error.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/tape/small_step.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tape_page_test {
namespace {

TapeRecording tour_recording() {
  TapeRecording recording = record_tape(small_step(tour_loss), 100);
  add_differences(recording, small_step(tour_loss));
  recording.title = "A <tape> & more";
  return recording;
}

/// The drawing, if Graphviz is here; else nothing.
std::string drawn_or_nothing(const std::string& graph) {
  try {
    return drawn_by_graphviz(graph);
  } catch (const NotAvailable& error) {
    CHECK_THAT(std::string(error.what()), ContainsSubstring("install the package graphviz, or take --dot"));
    return {};
  }
}

TEST_CASE("tape page: JSON has everything that was recorded", "[tape]") {
  const TapeRecording recording = tour_recording();
  const nlohmann::json json = json_of(recording);
  CHECK(json["ops"].size() == 4);
  CHECK(json["values"][0]["numbers"] == nlohmann::json({0.5, -1.0, 0.25, 0.75}));
  CHECK(json["values"][0]["numeric"].size() == 4);
  CHECK(json["ops"][0]["backward"]["shares"][0]["how"] == "add");
  CHECK(json["ops"][0]["backward"]["shares"][0]["before"].size() == 4);
  CHECK(json["ops"][2]["kept"][0]["value"] == json["ops"][2]["outputs"][0]);
  CHECK(json["turn"]["kept"] == 96);
  CHECK(json["peak_bytes"] == 128);
  CHECK(json["agreed"] == json["checked"]);
  CHECK(json["tolerance"] == 1e-6);
  CHECK(json["moved_by"] == 1e-5);
}

TEST_CASE("tape page: the drawing for Graphviz", "[tape]") {
  const TapeRecording recording = tour_recording();
  const std::string graph = tape_graph(recording, false);
  CHECK(graph.starts_with(kTapeGraphBeginning));
  CHECK_THAT(graph, ContainsSubstring("value0 [shape=ellipse") && ContainsSubstring("label=\"leaf 0\\n[2, 2]\"]") &&
                        ContainsSubstring("label=\"matmul\\n[2, 2] 64 B\"]") && ContainsSubstring("value0 -> op0;") &&
                        ContainsSubstring("value0 -> op1;") && ContainsSubstring("op2 -> op3;"));
  CHECK(std::ranges::count(graph, '{') == std::ranges::count(graph, '}'));
  CHECK(graph.find("\u00b5s") == std::string::npos);
  CHECK_THAT(tape_graph(recording), ContainsSubstring("s\"]"));
  if (const std::string svg = drawn_or_nothing(graph); !svg.empty()) {
    const XmlElement drawing = XmlReader(svg).document();
    CHECK(drawing.name == "svg");
    CHECK(drawing.all("ellipse").size() == 2);
    CHECK(svg.find("DOCTYPE") == std::string::npos);
  }
}

TEST_CASE("tape page: names and scopes that are hostile stay text", "[tape]") {
  TapeRecording recording = tour_recording();
  recording.ops[1].scope = "a\"b/</script><script>alert(1)</script>";
  recording.ops[2].name = "<img src=x>";
  const std::string graph = tape_graph(recording, false), html = tape_page(recording, "Engram <1>");
  CHECK_THAT(graph, ContainsSubstring("label=\"a\\\"b\""));
  if (const std::string svg = drawn_or_nothing(graph); !svg.empty()) CHECK(XmlReader(svg).document().name == "svg");
  CHECK(html.starts_with(kTapePageBeginning));
  CHECK(html.find("alert(1)</script>") == std::string::npos);
  CHECK(html.find("<img") == std::string::npos);
  CHECK_THAT(html, ContainsSubstring("<h1>A &lt;tape&gt; &amp; more</h1>") && ContainsSubstring("Engram &lt;1&gt;"));
}

TEST_CASE("tape page: it asks for nothing, and says essentials without scripts", "[tape]") {
  const TapeRecording recording = tour_recording();
  const std::string html = tape_page(recording, "Engram");
  CHECK_THAT(html, ContainsSubstring("Content-Security-Policy\" content=\"default-src 'none'") &&
                       ContainsSubstring("<noscript>") && ContainsSubstring("<td>matmul</td>") &&
                       ContainsSubstring("<td>leaf 0, leaf 1</td>") &&
                       ContainsSubstring("<dt>gradients that differences confirm</dt><dd>21 of 21</dd>") &&
                       ContainsSubstring("<td>t3 [1]</td>"));
  CHECK(html.find("<p class=\"note\">") == std::string::npos);
  for (const char* address : {"src=\"", "href=\"http", "url("}) CHECK(html.find(address) == std::string::npos);
  const TapeRecording large = record_tape(small_step(tour_loss), 1);
  CHECK_THAT(tape_page(large, "Engram"), ContainsSubstring("5 of 6 tensors have more than 1 numbers"));
}

}  // namespace
}  // namespace engram::harness::tape_page_test
