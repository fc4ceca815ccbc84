/// README.md and docs/ against the program's own lists: commands, options and keys are the same in both.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
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

/// The parts of a page: what is before its first heading of the second order, and from each of those to the next.
std::vector<std::string> parts_of(const std::string& written) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin != std::string::npos;) {
    const std::size_t next = written.find("\n## ", begin + 1);
    parts.push_back(written.substr(begin, next == std::string::npos ? next : next - begin));
    begin = next;
  }
  return parts;
}

/// A call of the program in a listing, with the lines that go on behind it.
struct Call {
  std::string command, rest;
};

/// Lines that call `engram COMMAND`, by whatever path, or behind mpirun; what goes on below is indented.
std::vector<Call> calls_in(const std::string& written) {
  static const std::regex call(R"(^(?:\$ )?(?:mpirun .*)?(?:[^ ]*/)?\$?engram +([a-z]+)(.*))");
  std::vector<Call> calls;
  bool in_listing = false, goes_on = false;
  std::istringstream lines(written);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find(" # "));  // without a comment
    if (line.starts_with("```")) {
      in_listing = !in_listing;
      goes_on = false;
    } else if (in_listing && std::regex_match(line, match, call)) {
      calls.push_back({match[1], match[2]});
      goes_on = true;
    } else if (goes_on && line.starts_with("  ")) {
      calls.back().rest += " " + line;
    } else {
      goes_on = false;
    }
  }
  return calls;
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

TEST_CASE("pages: README names every command, and pages no other") {
  const std::vector<std::string> listed = program().names();
  const Names commands(listed.begin(), listed.end());

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

TEST_CASE("pages: what listings give to a command are its options") {
  std::size_t count = 0;
  for (const std::string& file : source_tree::all_pages(ENGRAM_SOURCE_DIR)) {
    if (file == "docs/reference/commands.md") continue;  // help, not calls
    for (const Call& call : calls_in(page(file))) {
      if (call.command == "help") continue;
      INFO(file << ": engram " << call.command << call.rest);
      const Names given = names_in(call.rest, "--"), options = options_of_help(program().help(80, call.command));
      count += given.size();
      CHECK(joined(without(given, options)) == "");
    }
  }
  CHECK(count > 100);
}

TEST_CASE("pages: options that the reference names are those of a command that it speaks of there", "[night]") {
  std::size_t count = 0;
  for (const std::string& file : source_tree::all_pages(ENGRAM_SOURCE_DIR)) {
    if (!file.starts_with("docs/reference/") || file == "docs/reference/commands.md") continue;
    // Others are about files and numbers, and name options of many commands.
    const bool is_of_commands = Names{"prepare", "training", "evaluation", "generation", "studies"}.contains(
        std::filesystem::path(file).stem().string());
    const std::vector<std::string> parts = parts_of(page(file));
    for (const std::string& part : parts) {
      // Other programs' options (mpirun's, srun's, unshare's, ctest's), an old name, and a mistake that is shown.
      Names known{"--help",
                  "--version",
                  "--rule",
                  "--logdir",
                  "--rate",
                  "--bind-to",
                  "--map-by",
                  "--mca",
                  "--mpi",
                  "--kill-on-bad-exit",
                  "--hostfile",
                  "--uts",
                  "--allow-run-as-root",
                  "--test-dir",
                  "--output-on-failure",
                  "--update"};
      for (const std::string& command : program().names())
        for (const std::string* text : {&parts.front(), &part})
          if (text->find("`" + command + "`") != std::string::npos || text->starts_with("\n## " + command + "\n") ||
              text->find("engram " + command) != std::string::npos || !is_of_commands)
            known.merge(options_of_help(program().help(80, command)));
      const Names here = names_in(part, "--");
      count += here.size();
      INFO(file << ", " << part.substr(0, part.find('\n', 1)));
      CHECK(joined(without(here, known)) == "");
    }
  }
  CHECK(count > 100);
}

TEST_CASE("pages: parts and calls are found") {
  CHECK(parts_of("# A\n\ntext\n## b\nmore\n## c\n") ==
        std::vector<std::string>{"# A\n\ntext", "\n## b\nmore", "\n## c\n"});
  const std::vector<Call> calls =
      calls_in("engram no --a\n```\nengram train --b \\\n  --c  # --d\n  --e\n--f\n```\nengram no\n");
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].command == "train");
  CHECK(names_in(calls[0].rest, "--") == Names{"--b", "--c", "--e"});
}

TEST_CASE("pages: every key of a model is on the pages of its family, and no page has others") {
  std::string all_pages;
  for (const std::string& file : source_tree::all_pages(ENGRAM_SOURCE_DIR))
    if (file != "README.md") all_pages += page(file);
  // Of the guide and of the reference.
  const std::map<ModelFamily, std::string> pages{{ModelFamily::all_attention, "all-attention.md"},
                                                 {ModelFamily::transformer_xl, "transformer-xl.md"},
                                                 {ModelFamily::product_key, "product-key.md"},
                                                 {ModelFamily::recurrent, "key-value-predict.md"}};
  Names keys;
  for (const ModelFamily family : kModelFamilies) {
    const std::string own = page("docs/guide/" + pages.at(family)) + page("docs/reference/" + pages.at(family)) +
                            page("docs/reference/product-key.md") + page("docs/reference/training.md");
    Names missing;
    for (const ConfigKey& key : config_keys(family)) {
      keys.insert(key.full_name());
      if (key.section != "model" && key.section != "product_key") continue;  // docs/reference/keys.md has them all
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
    // Files, a key of older versions, a misspelt one that is shown, and beginnings of keys.
    std::erase_if(named, [](const std::string& name) {
      const std::string_view ending = std::string_view(name).substr(name.rfind('.'));
      return ending == ".safetensors" || ending == ".partial" || ending == ".hpp" || ending == ".cpp" ||
             ending == ".py" || ending == ".md" || ending == ".pt" || name == "model.adaptive_span" ||
             name == "model.widht" || name.ends_with('_');
    });
    CHECK(joined(without(named, keys)) == "");
  }
}

}  // namespace engram::harness::help_pages_test
