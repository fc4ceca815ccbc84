#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/apps/report/rooms_drawing.hpp"
#include "tests/harness/catch.hpp"

namespace engram::rooms_drawing_test {
namespace {

const std::filesystem::path kRoot = ENGRAM_SOURCE_DIR;

std::string drawing_now() { return draw_rooms(source_tree::includes_of(source_tree::all_sources(kRoot))); }

TEST_CASE("the drawing of the rooms is what the includes say", "[layering]") {
  std::ifstream in(kRoot / "docs/rooms.svg");
  const std::string kept{std::istreambuf_iterator<char>(in), {}};
  INFO("docs/rooms.svg is made anew by: engram_tests_apps \"write the drawing of the rooms\"");
  CHECK(kept == drawing_now());
}

TEST_CASE("the drawing of rooms leaves out arrows that others say", "[layering]") {
  const source_tree::Includes includes{{"apps/commands/a", {"apps/run/model/b", "core/c"}},
                                       {"apps/run/model/b", {"apps/run/config/d", "core/c"}},
                                       {"tests/e", {"apps/commands/a"}}};
  const std::string drawing = draw_rooms(includes);
  for (const char* name : {">apps/commands<", ">apps/run<", ">core<", ">model<", ">config<"})
    CHECK_THAT(drawing, ContainsSubstring(name));
  CHECK(drawing.find("tests") == std::string::npos);
  // Two arrows of three strokes each: from commands to run, from run to core.
  std::size_t strokes = 0;
  for (std::size_t at = drawing.find("<line"); at != std::string::npos; at = drawing.find("<line", at + 1)) ++strokes;
  CHECK(strokes == 6);
}

// Hidden because it is no test but the tool that makes the drawing anew: run with the others it would overwrite what
// the first case above compares with, and that case could never fail. It writes only where it is named (put_into_tree).
TEST_CASE("write the drawing of the rooms", "[.]") {
  source_tree::put_into_tree(kRoot / "docs/rooms.svg", drawing_now());
}

}  // namespace
}  // namespace engram::rooms_drawing_test
