/// How pages are written: widths of their lines; links, anchors and commands that there are; an index that has them
/// all.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::pages_test {
namespace {

namespace fs = std::filesystem;
using source_tree::Lines;
using source_tree::lines_of;

const fs::path kRoot = ENGRAM_SOURCE_DIR;

constexpr std::size_t kWidth = 120;  ///< characters of a line of prose
constexpr std::size_t kCell = 160;  ///< characters of a cell: what is longer is a sentence, and belongs below the table

/// A page without its listings: their lines are empty, so that the others keep their numbers.
Lines without_listings(Lines lines) {
  std::string fence;  // what began the listing that we are in
  for (std::string& line : lines) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t ticks = std::min(line.find_first_not_of('`', begin), line.size()) - begin;
    const bool is_fence = ticks >= 3 && (fence.empty() || ticks >= fence.size());
    const bool listed = is_fence || !fence.empty();
    if (is_fence) fence = fence.empty() ? std::string(ticks, '`') : "";
    if (listed) line.clear();
  }
  return lines;
}

/// Characters, not bytes, of UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

/// What stands between the bars of a row of a table, without blanks at its ends. Bars in code are text.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells(1);
  bool in_code = false;
  for (const char byte : row) {
    if (byte == '`') in_code = !in_code;
    if (byte == '|' && !in_code)
      cells.emplace_back();
    else if (byte != ' ' || !cells.back().empty())
      cells.back() += byte;
  }
  for (std::string& cell : cells)
    while (cell.ends_with(' ')) cell.pop_back();
  return cells;
}

/// Numbers of the lines that are too long, from 1.
std::vector<std::size_t> too_long(const Lines& page) {
  std::vector<std::size_t> found;
  const Lines lines = without_listings(page);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool fits = lines[i].starts_with('|')
                          ? std::ranges::all_of(cells_of(lines[i]), [](auto& cell) { return width_of(cell) <= kCell; })
                          : width_of(lines[i]) <= kWidth;
    if (!fits) found.push_back(i + 1);
  }
  return found;
}

/// The last part of the address of a heading, as GitHub makes it: lower case, blanks become dashes, of all else
/// letters, digits, dashes and underscores stay. Bytes beyond ASCII are taken for letters. Of a link its text counts.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (std::size_t at = 0; at < heading.size(); ++at) {
    const auto byte = static_cast<unsigned char>(heading[at]);
    if (heading.substr(at).starts_with("]("))
      at = std::min(heading.find(')', at), heading.size());
    else if (std::isalnum(byte) != 0 || byte == '-' || byte == '_' || byte >= 0x80)
      anchor += static_cast<char>(std::tolower(byte));
    else if (byte == ' ')
      anchor += '-';
  }
  return anchor;
}

/// Of all headings of a page; the second of one name ends with -1, the third with -2.
std::set<std::string> anchors_of(const Lines& page) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  for (const std::string& line : without_listings(page)) {
    const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
    if (level == 0 || level > 6 || level == line.size() || line[level] != ' ') continue;
    const std::string anchor = anchor_of(std::string_view(line).substr(level + 1));
    const int before = seen[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + '-' + std::to_string(before));
  }
  return anchors;
}

struct Link {
  std::size_t line = 0;  ///< where it ends, from 1
  std::string file;      ///< as the page writes it; empty for the page itself
  std::string anchor;    ///< without '#'; empty where there is none
  friend bool operator==(const Link&, const Link&) = default;
};

/// Links and pictures of a page, but for those to other sites. A link may be broken into lines; code has none.
std::vector<Link> links_of(const Lines& page) {
  std::vector<Link> links;
  const Lines lines = without_listings(page);
  bool in_code = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty()) in_code = false;  // no code goes on behind a paragraph
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '`') in_code = !in_code;
      if (in_code || !std::string_view(line).substr(at).starts_with("](")) continue;
      const std::size_t end = line.find(')', at);
      const std::string target = line.substr(at + 2, end == line.npos ? end : end - at - 2);
      if (target.find("://") != target.npos) continue;
      const std::size_t hash = std::min(target.find('#'), target.size());
      links.push_back({i + 1, target.substr(0, hash), hash < target.size() ? target.substr(hash + 1) : ""});
    }
  }
  return links;
}

/// COMMAND of lines of listings that call `engram COMMAND`, by whatever path, or behind mpirun.
std::vector<std::string> commands_in(const Lines& page) {
  static const std::regex call(R"(^(\$ )?(mpirun .*)?([^ ]*/)?\$?engram +([a-z]+).*)");
  std::vector<std::string> commands;
  const Lines prose = without_listings(page);
  std::smatch match;
  for (std::size_t i = 0; i < page.size(); ++i)
    if (prose[i] != page[i] && std::regex_match(page[i], match, call)) commands.push_back(match[4]);
  return commands;
}

/// The names that sources give to commands; the program itself is not linked here.
std::set<std::string> all_commands() {
  static const std::regex declaration("add_subcommand\\(\"([a-z]+)\"");
  std::set<std::string> commands{"help"};
  std::smatch match;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "apps/commands"))
    if (entry.path().extension() == ".cpp")
      for (const std::string& line : lines_of(entry.path()))
        if (std::regex_search(line, match, declaration)) commands.insert(match[1]);
  return commands;
}

TEST_CASE("docs: lines of prose and cells of tables are short") {
  std::size_t count = 0;
  for (const std::string& page : source_tree::all_pages(kRoot)) {
    ++count;
    for (const std::size_t line : too_long(lines_of(kRoot / page))) {
      INFO(page << ':' << line << ": a line of prose has at most " << kWidth << " characters, a cell " << kCell
                << "; break the line, make two sentences of one, or a list of the table");
      CHECK(false);
    }
  }
  CHECK(count > 20);
}

/// Of prose and tables; listings are looked at, not read word by word.
std::size_t words_of(const Lines& page) {
  std::size_t words = 0;
  for (const std::string& line : without_listings(page)) {
    if (line.starts_with("<!--")) continue;
    std::istringstream all(line);
    for (std::string word; all >> word;) words += word == "|" ? 0 : 1;
  }
  return words;
}

TEST_CASE("docs: README is read in two minutes, a page of the guide in five") {
  constexpr std::size_t kMost = 1000;                                   // 200 words a minute
  const std::map<std::string, std::size_t> in_parts{{"course", 2000}};  // of six evenings
  std::size_t pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs/guide")) {
    const std::string page = entry.path().stem().string();
    const std::size_t most = in_parts.contains(page) ? in_parts.at(page) : kMost, words = words_of(lines_of(entry));
    INFO("docs/guide/" << page << ".md has " << words << " words, more than " << most
                       << "; move what is exact to the page of this name in docs/reference");
    CHECK(words <= most);
    ++pages;
  }
  CHECK(pages > 20);
  const Lines readme = lines_of(kRoot / "README.md");
  CHECK(words_of(readme) <= 500);
  const auto begin = std::ranges::find(readme, "## What works");
  const auto end = std::find_if(begin == readme.end() ? begin : begin + 1, readme.end(),
                                [](const std::string& line) { return line.starts_with("## "); });
  const auto filled = std::count_if(begin, end, [](const std::string& line) { return !line.empty(); });
  CHECK((filled > 6 && filled <= 13));  // its heading, and at most twelve lines
  CHECK(std::ranges::count_if(readme, [](const std::string& line) { return line.starts_with("!["); }) == 3);
  CHECK(words_of({"| a b | c |", "```", "d e", "```", "<!-- run: f => g -->", "h"}) == 4);
}

TEST_CASE("docs: README says how many lines core and autograd have") {
  std::size_t lines = 0;
  for (const char* folder : {"core", "autograd"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".hpp" || entry.path().extension() == ".cpp")
        lines += lines_of(entry.path()).size();
  static const std::regex count("`core/` and `autograd/`,[^.]* (\\d+),(\\d)00 lines");
  std::string readme;
  for (const std::string& line : lines_of(kRoot / "README.md")) readme += line + ' ';
  std::smatch said;
  REQUIRE(std::regex_search(readme, said, count));
  const std::size_t number = 1000 * std::stoul(said[1]) + 100 * std::stoul(said[2]);
  INFO("README says " << number << ", there are " << lines);
  CHECK((number <= lines + 200 && lines <= number + 200));
}

TEST_CASE("docs: every link leads to a file, and to a heading of it") {
  std::map<std::string, std::set<std::string>> anchors;
  const std::vector<std::string> pages = source_tree::all_pages(kRoot);
  for (const std::string& page : pages) anchors[page] = anchors_of(lines_of(kRoot / page));
  std::size_t count = 0, to_headings = 0;
  for (const std::string& page : pages)
    for (const Link& link : links_of(lines_of(kRoot / page))) {
      ++count;
      const fs::path file = link.file.empty() ? fs::path(page) : fs::path(page).parent_path() / link.file;
      const std::string target = file.lexically_normal().generic_string();
      INFO(page << ':' << link.line << " links to " << link.file << '#' << link.anchor);
      CHECK((!target.starts_with("..") && fs::exists(kRoot / target)));
      if (link.anchor.empty()) continue;
      ++to_headings;
      CHECK((anchors.contains(target) && anchors.at(target).contains(link.anchor)));
    }
  CHECK(count > 150);
  CHECK(to_headings > 30);
}

TEST_CASE("docs: what listings call are commands") {
  const std::set<std::string> commands = all_commands();
  CHECK(commands.size() > 20);
  std::size_t count = 0;
  for (const std::string& page : source_tree::all_pages(kRoot))
    for (const std::string& command : commands_in(lines_of(kRoot / page))) {
      ++count;
      INFO(page << " calls engram " << command);
      CHECK(commands.contains(command));
    }
  CHECK(count > 60);
}

TEST_CASE("docs: the index has them all") {
  std::set<std::string> linked{"README.md", "docs/index.md"};
  for (const Link& link : links_of(lines_of(kRoot / "docs/index.md")))
    linked.insert((fs::path("docs") / link.file).lexically_normal().generic_string());
  for (const std::string& page : source_tree::all_pages(kRoot)) {
    INFO("docs/index.md must link to every page, and lacks " << page);
    CHECK(linked.contains(page));
  }
}

/// Parts of a page of measurements that do not say on which machine, on what day and at which commit their tables were
/// taken, or that it was not recorded. What stands above the first heading is said of all parts. Headings of parts.
std::vector<std::string> without_origin(const Lines& page) {
  static const std::regex machine("Zen \\d|Xeon|(machine|processor)\\s+not\\s+recorded"),
      day("2026-11-\\d\\d|\\d\\s+November|(Zen \\d|Xeon)( \\(\\d\\))?, \\d\\d"),
      commit("\\b(?=[0-9a-f]*\\d)[0-9a-f]{7}\\b|commit not\\s+recorded");
  std::vector<std::string> found;
  std::string all, part, heading;  // of the page, of the part below its heading
  bool has_table = false;
  const auto close_part = [&] {
    if (heading.empty()) all = part;
    const std::string said = all + part;
    const auto tells = [&](const std::regex& what) { return std::regex_search(said, what); };
    if (has_table && !heading.empty() && !(tells(machine) && tells(day) && tells(commit))) found.push_back(heading);
    part.clear();
    has_table = false;
  };
  for (const std::string& line : without_listings(page)) {
    if (line.starts_with("## ")) {
      close_part();
      heading = line.substr(3);
      continue;
    }
    has_table |= line.starts_with("|---");
    part += line + '\n';
  }
  close_part();
  return found;
}

TEST_CASE("docs: every table of measurements has a machine, a day and a commit") {
  std::size_t pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs/measurements")) {
    if (entry.path().stem() == "index") continue;  // says what they mean
    ++pages;
    for (const std::string& part : without_origin(lines_of(entry))) {
      INFO("docs/measurements/" << entry.path().filename().string() << ", '" << part
                                << "': say machine, day and commit of its tables, or 'machine not recorded' and so on");
      CHECK(false);
    }
  }
  CHECK(pages >= 12);
  const auto lacks = [](const std::string& above, const std::string& said) {
    return !without_origin({"# Page", above, "## Part", said, "|---|", "| 3 |", "## Text", "no table"}).empty();
  };
  CHECK_FALSE(lacks("", "Zen 3, 22, commit 01ab23c"));
  CHECK_FALSE(lacks("On a Xeon, 3 November", "commit not recorded"));
  CHECK(lacks("On a Xeon, 3 November", "commit decided"));  // seven letters are a word
  CHECK(lacks("3 November, commit 01ab23c", "on a machine"));
  CHECK(lacks("On a Xeon", "commit 01ab23c"));
}

TEST_CASE("docs: what is too long is found") {
  const std::string prose(kWidth, 'a'), cell(kCell, 'b');
  CHECK(too_long({prose, prose + 'a', "```", prose + 'a', "```", "# " + prose}) == std::vector<std::size_t>{2, 6});
  CHECK(too_long({"| x | " + cell + " | " + cell + " |", "| " + cell + "b |"}) == std::vector<std::size_t>{2});
  CHECK(too_long({"````", "```", prose + 'a', "````", prose + 'a'}) == std::vector<std::size_t>{5});
  CHECK(width_of("±µé") == 3);
  CHECK(cells_of("| `a | b` |  c d |") == std::vector<std::string>{"", "`a | b`", "c d", ""});
}

TEST_CASE("docs: calls are found") {
  CHECK(commands_in({"engram no", "```", "build/x/engram a --b", "$ mpirun -n 2 engram c", "$engram  d", "ENGRAM e",
                     "the engram f", "engram --version", "```"}) == std::vector<std::string>{"a", "c", "d"});
}

TEST_CASE("docs: links and anchors are found") {
  CHECK(links_of({"[a](b.md), `[c](d)`, [`e`](f.md#g) and ![h](i.svg)", "[j](https://k.l/#m) [n", "o](#p)", "```",
                  "[q](r)", "```"}) ==
        std::vector<Link>{{1, "b.md", ""}, {1, "f.md", "g"}, {1, "i.svg", ""}, {3, "", "p"}});
  CHECK(anchors_of({"# One `x_y`, two", "## a-b (c)", "```", "# none", "```", "## A-B C", "### [L m](n.md#o) p",
                    "#q"}) == std::set<std::string>{"one-x_y-two", "a-b-c", "a-b-c-1", "l-m-p"});
}

}  // namespace
}  // namespace engram::pages_test
