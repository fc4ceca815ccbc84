/// Tables of enumerators' names (core/names.hpp), held against the enums that they are of: the compiler does not ask
/// for an enumerator that a table lacks.

#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::enum_names_test {
namespace {

using Enumerators = std::vector<std::string>;

/// A source in one piece, without the comments that end its lines.
std::string code_of(const source_tree::Lines& lines) {
  std::string code;
  for (const std::string& line : lines) code += line.substr(0, line.find("//")) + '\n';
  return code;
}

std::map<std::string, Enumerators> enums_in(const std::string& code) {
  static const std::regex declaration(R"(enum class (\w+)[^;{}]*\{([^}]*)\})"), enumerator(R"((\w+)\s*(=[^,]*)?(,|$))");
  std::map<std::string, Enumerators> found;
  for (std::sregex_iterator at(code.begin(), code.end(), declaration), end; at != end; ++at) {
    const std::string body = (*at)[2];
    for (std::sregex_iterator one(body.begin(), body.end(), enumerator); one != end; ++one)
      found[(*at)[1]].push_back((*one)[1]);
  }
  return found;
}

/// Of the tables in `code`, by the last name of their enum, what their enums have and they do not; nothing for whole
/// ones.
std::map<std::string, Enumerators> missing_names(const std::string& code) {
  static const std::regex begin(R"(constexpr auto names_of\((?:\w+::)*(\w+)\) \{)");
  const std::map<std::string, Enumerators> enums = enums_in(code);
  std::map<std::string, Enumerators> missing;
  for (std::sregex_iterator at(code.begin(), code.end(), begin), end; at != end; ++at) {
    const std::string type = (*at)[1];
    const auto from = static_cast<std::size_t>(at->position());
    const std::string table = code.substr(from, code.find(';', from) - from);
    missing[type];
    // An enum that stands elsewhere than its table is missing whole.
    const auto found = enums.find(type);
    if (found == enums.end()) {
      missing[type].push_back(type);
      continue;
    }
    for (const std::string& enumerator : found->second)
      if (table.find("::" + enumerator + ",") == std::string::npos) missing[type].push_back(enumerator);
  }
  return missing;
}

TEST_CASE("names of enumerators: a table that lacks some, or has no enum beside it, is found") {
  const std::string fruit = "enum class Fruit : std::uint8_t { apple, pear = 4, plum };\n";
  const std::string table =
      "constexpr auto names_of(Shop::Fruit) {\n  return std::to_array<Named<Fruit>>({{Shop::Fruit::apple, \"apple\"},\n"
      "      {Shop::Fruit::plum, \"plum\"}});\n}\n";
  CHECK(missing_names(fruit + table).at("Fruit") == Enumerators{"pear"});
  CHECK(missing_names(table).at("Fruit") == Enumerators{"Fruit"});
  CHECK(missing_names("enum class Fruit { apple, plum };\n" + table).at("Fruit").empty());
}

TEST_CASE("names of enumerators: every table has all of its enum") {
  std::size_t tables = 0;
  for (const source_tree::SourceFile& source : source_tree::all_sources(ENGRAM_SOURCE_DIR)) {
    if (source.path.starts_with("tests/")) continue;
    for (const auto& [type, missing] : missing_names(code_of(source.lines))) {
      ++tables;
      INFO(source.path << ": " << type);
      CHECK(missing == Enumerators{});
    }
  }
  // Fewer would mean that they are written in another way now.
  CHECK(tables >= 45);
}

}  // namespace
}  // namespace engram::enum_names_test
