/// What pages say of the tree, held against it.

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::docs_test {
namespace {

namespace fs = std::filesystem;
using source_tree::Lines;
using source_tree::lines_of;

const fs::path kRoot = ENGRAM_SOURCE_DIR;

/// Files and folders of the top folders that a line names. Patterns (cuda/*.cu) and names that stand for others
/// (cpu/NAME.cpp) are none.
std::vector<std::string> paths_in(const std::string& line) {
  static const std::regex path(R"((^|[^\w./-])((apps|nn|core|autograd|cpu|cuda|tests|docs)/[\w./*{},-]*[\w/}]))");
  std::vector<std::string> paths;
  for (std::sregex_iterator at(line.begin(), line.end(), path), end; at != end; ++at) {
    const std::string found = (*at)[2];
    if (found.find_first_of("*{") == std::string::npos && found.find("NAME") == std::string::npos)
      paths.push_back(found);
  }
  return paths;
}

/// A page may leave out the extension of a header and its source.
bool is_there(const std::string& path) { return fs::exists(kRoot / path) || fs::exists(kRoot / (path + ".hpp")); }

TEST_CASE("docs: every path that a page names is there") {
  std::size_t count = 0;
  for (const std::string& page : source_tree::all_pages(kRoot)) {
    const Lines lines = lines_of(kRoot / page);
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (const std::string& path : paths_in(lines[i])) {
        // The tour adds an operation that is not in the tree.
        if (fs::path(path).stem() == "square") continue;
        ++count;
        INFO(page << ":" << i + 1);
        INFO(path);
        CHECK(is_there(path));
      }
  }
  CHECK(count > 200);
}

/// The names in code of a line: of `Tape::backward` both.
std::vector<std::string> names_in(const std::string& line) {
  static const std::regex name("`([A-Z]\\w+|[a-z_]+)(::(\\w+))?`");
  std::vector<std::string> names;
  for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
    names.push_back((*at)[1]);
    if ((*at)[3].matched) names.push_back((*at)[3]);
  }
  return names;
}

TEST_CASE("docs: the way through the code names functions that are where it says") {
  std::size_t count = 0;
  bool in_ways = false;  // in a table whose rows name functions, and the sources that have them
  for (const std::string& line : lines_of(kRoot / "docs/rooms.md")) {
    if (line.starts_with("## ")) in_ways = line.starts_with("## One ");
    if (!in_ways || !line.starts_with("| ")) continue;
    std::string sources;
    for (const std::string& path : paths_in(line)) {
      for (const char* extension : {".hpp", ".cpp", ".cu", ".cuh"}) {
        const fs::path file = (kRoot / path).replace_extension(extension);
        if (!fs::exists(file)) continue;
        for (const std::string& text : lines_of(file)) sources += text + '\n';
      }
    }
    if (sources.empty()) continue;
    for (const std::string& name : names_in(line.substr(line.find('|', 1)))) {
      ++count;
      INFO(line);
      INFO(name);
      CHECK(sources.find(name) != std::string::npos);
    }
  }
  CHECK(count > 40);
}

/// Sections of a page on mathematics, by the numbers that its headings begin with: "### 1.7 Memory" is section 1.7.
std::set<std::string> sections_of(const Lines& page) {
  static const std::regex heading("^#+ (\\d+(\\.\\d+)*) .*");
  std::set<std::string> sections;
  std::smatch match;
  for (const std::string& line : page)
    if (std::regex_match(line, match, heading)) sections.insert(match[1]);
  return sections;
}

struct Citation {
  std::string family, section;
  friend bool operator==(const Citation&, const Citation&) = default;
};

/// "[transformer-xl 1.3, 1.8]", also where a comment breaks it into two lines. Of "1.3 to 1.5" both ends.
std::vector<Citation> citations_in(const Lines& lines) {
  static const std::regex bracket("\\[(all-attention|transformer-xl|product-key|key-value-predict) (\\d[^\\]]*)\\]"),
      number("\\d+(\\.\\d+)*");
  constexpr std::string_view kFamilies[] = {"all-attention", "transformer-xl", "product-key", "key-value-predict"};
  const bool may_cite = std::ranges::any_of(lines, [&](const std::string& line) {
    return std::ranges::any_of(kFamilies, [&](std::string_view family) { return line.find(family) != line.npos; });
  });
  if (!may_cite) return {};  // most sources; expressions are slow
  std::string all;
  for (const std::string& line : lines) {
    const std::size_t begin = line.find_first_not_of(" /<#");
    if (begin != line.npos) all += line.substr(begin) + ' ';
  }
  std::vector<Citation> found;
  for (std::sregex_iterator at(all.begin(), all.end(), bracket), end; at != end; ++at) {
    const std::string list = (*at)[2];
    for (std::sregex_iterator one(list.begin(), list.end(), number); one != end; ++one)
      found.push_back({(*at)[1], one->str()});
  }
  return found;
}

TEST_CASE("docs: every citation of the mathematics leads to its section") {
  std::map<std::string, std::set<std::string>> sections;
  for (const char* family : {"all-attention", "transformer-xl", "product-key", "key-value-predict"}) {
    sections[family] = sections_of(lines_of(kRoot / "docs/mathematics" / (std::string(family) + ".md")));
    INFO(family);
    CHECK(sections[family].size() > 10);
  }
  std::size_t count = 0;
  for (const source_tree::SourceFile& source : source_tree::all_sources(kRoot)) {
    if (source.path == "tests/docs_test.cpp") continue;
    for (const auto& [family, section] : citations_in(source.lines)) {
      ++count;
      INFO(source.path << " cites [" << family << ' ' << section << ']');
      CHECK(sections.at(family).contains(section));
    }
  }
  CHECK(count > 300);
}

TEST_CASE("docs: citations are found") {
  CHECK(citations_in({"/// As [transformer-xl 1.3, 4] has it, and [product-key", "/// 2.1 to 2.3]; [1], [x 2]"}) ==
        std::vector<Citation>{
            {"transformer-xl", "1.3"}, {"transformer-xl", "4"}, {"product-key", "2.1"}, {"product-key", "2.3"}});
  CHECK(sections_of({"# 7 models", "## 1 Forward", "### 1.10 More", "## Other", "text 3 x"}) ==
        std::set<std::string>{"7", "1", "1.10"});
}

TEST_CASE("docs: paths and names are found") {
  CHECK(paths_in("see `core/a.hpp`, cpu/NAME.cpp, cuda/*.cu and (docs/b.md#c), not xcore/d") ==
        std::vector<std::string>{"core/a.hpp", "docs/b.md"});
  CHECK(names_in("| x | `Tape::backward`, `attention` |") == std::vector<std::string>{"Tape", "backward", "attention"});
  CHECK_FALSE(is_there("core/nothing.hpp"));
  CHECK(is_there("core/tensor"));
}

}  // namespace
}  // namespace engram::docs_test
