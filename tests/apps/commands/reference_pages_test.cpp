/// The pages that the program writes of itself, as they are in docs/reference/.

#include "tests/apps/commands/reference_pages.hpp"

#include <filesystem>
#include <set>
#include <string>

#include "apps/run/config/config_keys.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::reference_pages_test {
namespace {

const std::filesystem::path kReference = std::filesystem::path(ENGRAM_SOURCE_DIR) / "docs/reference";

/// The first line in which two texts differ, of the second; empty: they are the same.
std::string first_difference(const std::string& one, const std::string& other) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < one.size() || at < other.size(); ++at) {
    if (at >= one.size() || at >= other.size() || one[at] != other[at])
      return other.substr(begin, other.find('\n', begin) - begin) + " (byte " + std::to_string(at) + ")";
    if (one[at] == '\n') begin = at + 1;
  }
  return "";
}

}  // namespace

TEST_CASE("pages: those of commands and keys are what the program says today") {
  INFO(
      "docs/reference/commands.md and keys.md are made anew by: engram_tests_apps \"write the pages of commands and "
      "keys\"");
  CHECK(first_difference(get_file(kReference / "commands.md"), commands_page()) == "");
  CHECK(first_difference(get_file(kReference / "keys.md"), keys_page()) == "");
}

TEST_CASE("pages: that of keys has every key of every family once") {
  const std::string page = keys_page();
  for (const ModelFamily family : kModelFamilies)
    for (const ConfigKey& key : config_keys(family)) {
      CAPTURE(name_of(family), key.full_name());
      const std::string title =
          key.section == "model" ? "model of " + std::string(name_of(family)) : std::string(key.section);
      const std::size_t begin = page.find("\n## " + title + "\n");
      REQUIRE(begin != page.npos);
      const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
      const std::string row = "\n| `" + std::string(key.name) + "` ";
      const std::size_t at = section.find(row);
      REQUIRE(at != section.npos);
      CHECK(section.find(row, at + 1) == section.npos);
      CHECK_THAT(section.substr(at, section.find('\n', at + 1) - at), ContainsSubstring(std::string(key.meaning)));
    }
}

TEST_CASE("pages: what differs is found") {
  CHECK(first_difference("a\nb\n", "a\nb\n") == "");
  CHECK(first_difference("a\nb\n", "a\nc\n") == "c (byte 2)");
  CHECK(first_difference("a\n", "a\nb") == "b (byte 2)");
}

// Hidden because it makes the pages that a case above compares with; it writes only where it is named (put_into_tree).
TEST_CASE("write the pages of commands and keys", "[.]") {
  source_tree::put_into_tree(kReference / "commands.md", commands_page());
  source_tree::put_into_tree(kReference / "keys.md", keys_page());
}

}  // namespace engram::harness::reference_pages_test
