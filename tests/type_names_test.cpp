/// Types of headers have one definition each: two of one name are one to the linker, which takes the destructor of
/// either for both (the rule of one definition), and no compiler says so.

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::type_names_test {
namespace {

/// The types that a header defines at the outermost level of its namespace, with that.
std::vector<std::string> types_in(const source_tree::Lines& lines) {
  static const std::regex opening(R"(namespace ([\w:]+) \{)"),
      type(R"((?:class|struct) (?:ENGRAM_EXPORT )?(\w+)(?: final)?(?: : [^;]*)?(?: \{.*|))");
  std::string space;
  std::vector<std::string> found;
  std::smatch match;
  for (const std::string& line : lines) {
    if (std::regex_match(line, match, opening)) space = match[1];
    if (std::regex_match(line, match, type)) found.push_back(space + "::" + match[1].str());
  }
  return found;
}

}  // namespace

TEST_CASE("names of types: those of headers are defined once") {
  std::map<std::string, std::string> headers;
  for (const source_tree::SourceFile& source : source_tree::all_sources(ENGRAM_SOURCE_DIR)) {
    if (!source.path.ends_with(".hpp") || source.path.starts_with("tests/")) continue;
    for (const std::string& type : types_in(source.lines)) {
      const auto [at, is_new] = headers.emplace(type, source.path);
      INFO(type << " is in " << at->second << " and in " << source.path);
      CHECK(is_new);
    }
  }
  CHECK(headers.size() > 300);
  CHECK(headers.at("engram::RunToExport") == "apps/run/weights/run_to_export.hpp");
}

TEST_CASE("names of types: definitions are found, declarations are not") {
  CHECK(types_in({"namespace engram::data {", "struct A {", "class B;", "  struct Inner {",
                  "class C final : public A {", "struct D {};", "struct A* made();"}) ==
        std::vector<std::string>{"engram::data::A", "engram::data::C", "engram::data::D"});
}

}  // namespace engram::type_names_test
