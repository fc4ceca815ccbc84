/// The page about the library shows what its examples have.

#include <filesystem>
#include <regex>
#include <string>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::library_page_test {
namespace {

std::string without_indent(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

TEST_CASE("library: the page shows lines of its examples, in their order") {
  const std::filesystem::path root = ENGRAM_SOURCE_DIR;
  const std::regex named("^From \\[(apps/examples/\\w+\\.cpp)\\]");
  source_tree::Lines source;
  std::size_t at = 0, shown = 0;
  bool listed = false;
  for (const std::string& line : source_tree::lines_of(root / "docs/guide/library.md")) {
    std::smatch match;
    if (std::regex_search(line, match, named)) {
      source = source_tree::lines_of(root / match[1].str());
      at = 0;
    }
    if (line.starts_with("```")) {
      listed = line == "```cpp";
      continue;
    }
    const std::string wanted = without_indent(line);
    if (!listed || wanted.empty()) continue;
    while (at < source.size() && without_indent(source[at]) != wanted) ++at;
    INFO(wanted);
    REQUIRE(at < source.size());
    ++shown;
  }
  CHECK(shown > 20);
}

}  // namespace
}  // namespace engram::library_page_test
