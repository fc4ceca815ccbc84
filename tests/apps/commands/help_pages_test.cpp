/// README.md and docs/ against the program's own lists: commands, options and keys are the same in both.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/run/config/config_keys.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::help_pages_test {
namespace {

using Names = std::set<std::string>;

std::string page(const std::string& name) {
  std::string written = get_file(std::filesystem::path(ENGRAM_SOURCE_DIR) / name);
  REQUIRE_FALSE(written.empty());
  return written;
}

bool is_of_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
}

/// What begins with `start` and goes on as names do; a full stop or dash at the end belongs to the sentence.
Names names_in(const std::string& written, const std::string& start) {
  Names names;
  for (std::size_t at = written.find(start); at != std::string::npos; at = written.find(start, at + 1)) {
    if (at > 0 && is_of_name(written[at - 1])) continue;
    std::size_t end = at + start.size();
    while (end < written.size() && is_of_name(written[end])) ++end;
    while (end > at && (written[end - 1] == '.' || written[end - 1] == '-')) --end;
    if (end > at + start.size()) names.insert(written.substr(at, end - at));
  }
  return names;
}

/// The text of a page between a heading and the next one, by the names in the heading: "## lengths, recl" is of both.
std::map<std::string, std::string> sections_of(const std::string& written) {
  std::map<std::string, std::string> sections;
  for (std::size_t at = written.find("\n## "); at != std::string::npos;) {
    const std::size_t next = written.find("\n## ", at + 1), line = written.find('\n', at + 1);
    const std::string text = written.substr(line, next == std::string::npos ? next : next - line);
    std::string name;
    for (const char byte : written.substr(at + 4, line - at - 4) + ",") {
      if (byte != ',') {
        if (byte != ' ' || !name.empty()) name += byte;
        continue;
      }
      sections[name] += text;
      name.clear();
    }
    at = next;
  }
  return sections;
}

/// The pages that a text of docs/reference/ has links to.
std::string linked_pages(const std::string& written) {
  std::string all;
  for (const std::string& name : names_in(written, "(")) {
    const std::string file = name.substr(1);
    if (file.ends_with(".md")) all += page("docs/reference/" + file);
  }
  return all;
}

/// --out of "  --out FOLDER  ...", of a command's help.
Names options_of_help(const std::string& help) {
  Names options;
  for (std::size_t at = help.find("\n  --"); at != std::string::npos; at = help.find("\n  --", at + 1)) {
    const std::size_t end = help.find_first_of(" \n,", at + 3);
    options.insert(help.substr(at + 3, end - at - 3));
  }
  return options;
}

CommandLine& program() {
  static CommandLine line("engram", "");
  static const bool added = (add_all_commands(line.commands()), true);
  REQUIRE(added);
  return line;
}

std::string joined(const Names& names) {
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

Names without(const Names& from, const Names& names) {
  Names left;
  std::ranges::set_difference(from, names, std::inserter(left, left.end()));
  return left;
}

}  // namespace

TEST_CASE("pages: README and the page of commands name every command, and no other") {
  const std::vector<std::string> listed = program().names();
  const Names commands(listed.begin(), listed.end());
  const std::string commands_page = page("docs/reference/command-line.md");
  Names in_table, with_section;
  for (const std::string& command : commands) {
    if (commands_page.find("\n| `" + command + "`") != std::string::npos) in_table.insert(command);
    if (sections_of(commands_page).contains(command)) with_section.insert(command);
  }
  CHECK(joined(without(commands, in_table)) == "");
  CHECK(joined(without(commands, with_section)) == "");

  // README's list, on several lines: `engram prepare, keys, ...`.
  const std::string readme = page("README.md");
  constexpr std::string_view kBeginning = "`engram ";
  const std::size_t start = readme.find(std::string(kBeginning) + "prepare, ");
  REQUIRE(start != std::string::npos);
  const std::size_t begin = start + kBeginning.size();
  Names in_readme;
  std::string name;
  for (const char byte : readme.substr(begin, readme.find('`', begin) - begin) + ",")
    if (byte == ',')
      in_readme.insert(std::exchange(name, ""));
    else if (byte != ' ' && byte != '\n')
      name += byte;
  CHECK(in_readme == commands);

  // "engram COMMAND" anywhere: what follows in code is a command.
  for (const std::string& file : source_tree::all_pages(ENGRAM_SOURCE_DIR))
    for (const std::string& called : names_in(page(file), "`engram ")) {
      INFO(file << " " << called);
      const std::string command = called.substr(8);
      CHECK((commands.contains(command) || command == "help" || command.starts_with("--")));
    }
}

TEST_CASE("pages: every option of a command is in its section or on the pages that it names, and no other") {
  const std::map<std::string, std::string> sections = sections_of(page("docs/reference/command-line.md"));
  REQUIRE(sections.contains("Options of many commands"));
  const Names of_many = names_in(sections.at("Options of many commands"), "--");
  Names all{"--help", "--version"};
  for (const std::string& command : program().names()) all.merge(options_of_help(program().help(80, command)));
  CHECK(joined(without(of_many, all)) == "");
  for (const std::string& command : program().names()) {
    INFO(command);
    REQUIRE(sections.contains(command));
    const std::string& section = sections.at(command);
    const Names options = options_of_help(program().help(80, command)), here = names_in(section, "--");
    CHECK(options.size() >= 1);
    Names described = names_in(linked_pages(section), "--");
    described.insert(here.begin(), here.end());
    described.insert(of_many.begin(), of_many.end());
    CHECK(joined(without(options, described)) == "");
    // Others may be those of the commands that the section speaks of.
    Names known = options;
    for (const std::string& other : program().names())
      if (section.find("`" + other) != std::string::npos || section.find("engram " + other) != std::string::npos)
        known.merge(options_of_help(program().help(80, other)));
    known.merge(Names{"--help", "--rule", "--logdir"});  // an old name, and TensorBoard's
    CHECK(joined(without(here, known)) == "");
  }
}

TEST_CASE("pages: every key of a configuration is on a page of its family, and no page has others") {
  std::string all_pages;
  const std::string shared =
      page("docs/reference/command-line.md") + page("docs/reference/tables.md") + page("docs/reference/numerics.md");
  for (const std::string& file : source_tree::all_pages(ENGRAM_SOURCE_DIR))
    if (file != "README.md") all_pages += page(file);
  const std::map<ModelFamily, std::string> pages{{ModelFamily::all_attention, "docs/guide/all-attention.md"},
                                                 {ModelFamily::transformer_xl, "docs/guide/transformer-xl.md"},
                                                 {ModelFamily::product_key, "docs/guide/product-key.md"},
                                                 {ModelFamily::recurrent, "docs/guide/key-value-predict.md"}};
  Names keys;
  for (const ModelFamily family : kModelFamilies) {
    const std::string own = page(pages.at(family)) + shared + page("docs/guide/product-key.md");
    Names missing;
    for (const ConfigKey& key : config_keys(family)) {
      keys.insert(key.full_name());
      const std::string name(key.name);
      const bool found = own.find("`" + name + "`") != std::string::npos ||
                         own.find(name + " = ") != std::string::npos || own.find(key.full_name()) != std::string::npos;
      if (!found) missing.insert(key.full_name());
    }
    INFO(name_of(family));
    CHECK(joined(missing) == "");
  }
  for (const char* section : {"model.", "product_key.", "optimizer.", "schedule.", "training."}) {
    Names named = names_in(all_pages, section);
    // Files, a key of older versions, and beginnings of keys.
    std::erase_if(named, [](const std::string& name) {
      const std::string_view ending = std::string_view(name).substr(name.rfind('.'));
      return ending == ".safetensors" || ending == ".partial" || ending == ".hpp" || ending == ".cpp" ||
             ending == ".py" || name == "model.adaptive_span" || name.ends_with('_');
    });
    CHECK(joined(without(named, keys)) == "");
  }
}

}  // namespace engram::harness::help_pages_test
