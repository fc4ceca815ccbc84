/// The pages for man: all that the help says is in them, roff takes them, and the version is the newest of the
/// changelog.

#include "apps/command_line/manual_page.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::manual_page_test {
namespace {

CommandDescription described() {
  CommandLine line("engram", "Engram: language models with memory", "1");
  add_all_commands(line.commands());
  return line.commands().describe();
}

/// The words of a page as roff shows them, as far as these pages need.
std::string shown(std::string page) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"\\-", "-"},
                                                                                 {"\\(aq", "'"},
                                                                                 {"\\(ga", "`"},
                                                                                 {"\\(ti", "~"},
                                                                                 {"\\(ha", "^"},
                                                                                 {"\\&", ""},
                                                                                 {"\\fB", ""},
                                                                                 {"\\fI", ""},
                                                                                 {"\\fR", ""},
                                                                                 {"\\e", "\\"}})
    for (std::size_t at = page.find(from); at != std::string::npos; at = page.find(from, at + to.size()))
      page.replace(at, from.size(), to);
  return page;
}

std::string said_by(const std::string& command) {
  std::FILE* const pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  std::array<char, 4096> piece{};
  while (const std::size_t read = std::fread(piece.data(), 1, piece.size(), pipe)) said.append(piece.data(), read);
  ::pclose(pipe);
  return said;
}

}  // namespace

TEST_CASE("manual: pages have every option with its meaning, and every command") {
  const CommandDescription program = described();
  const std::string whole = shown(manual_page(program, "1.2", {{"EXIT STATUS", {{"0", "done"}}}}));
  CHECK_THAT(whole, StartsWith(".TH ENGRAM 1 \"\" \"Engram 1.2\" \"Engram\"\n.SH NAME\nengram - Engram: language"));
  CHECK_THAT(whole, ContainsSubstring(".SH EXIT STATUS\n.TP\n0\ndone\n"));
  for (const CommandDescription& command : program.commands) {
    INFO(command.name);
    CHECK_THAT(whole, ContainsSubstring("\n.TP\n" + command.name + "\n" + command.summary + "\n"));
    CHECK_THAT(whole, ContainsSubstring("\n.BR engram-" + command.name + " (1)"));
    const std::string page = shown(manual_page(program, command, "1.2"));
    CHECK_THAT(page, ContainsSubstring(".SH NAME\nengram-" + command.name + " - " + command.summary + "\n"));
    CHECK_THAT(page, ContainsSubstring(".SH SYNOPSIS\nengram " + command.name + " "));
    for (const auto* options : {&command.options, &command.arguments})
      for (const OptionDescription& option : *options) {
        std::string head;
        for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + name;
        head += (head.empty() || option.value.empty() ? "" : " ") + option.value;
        CHECK_THAT(page, ContainsSubstring("\n.TP\n" + head + "\n" + option.meaning + "\n"));
      }
  }
}

TEST_CASE("manual: what roff would read as its own is escaped") {
  const CommandDescription command{
      .name = "a", .summary = "b\\c", .footer = ".d\n'e f-g", .usage = {"--h I"}, .arguments = {}, .options = {}};
  const std::string page = manual_page({.name = "p"}, command, "1");
  CHECK_THAT(page, ContainsSubstring("p\\-a \\- b\\ec\n"));
  CHECK_THAT(page, ContainsSubstring(".SH DESCRIPTION\n\\&.d\n.PP\n\\&\\(aqe f\\-g\n"));
  CHECK_THAT(page, ContainsSubstring("\\fBp a\\fR \\fB\\-\\-h\\fR \\fII\\fR\n"));
}

TEST_CASE("manual: all pages are written, and groff and mandoc find no fault") {
  const TemporaryFolder folder;
  const ProcessResult made = run_engram({"manual", "--out", (folder / "man1").string()});
  REQUIRE(made.exit_code == 0);
  CHECK(made.out + made.err == "");
  std::string files;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man1")) {
    files += " '" + entry.path().string() + "'";
    ++count;
  }
  CHECK(count == described().commands.size() + 1);
  CHECK(get_file(folder / "man1/engram-train.1") == run_engram({"manual", "train"}).out);
  CHECK(get_file(folder / "man1/engram.1") == run_engram({"manual"}).out);
  CHECK_THAT(run_engram({"manual", "trane"}).err, ContainsSubstring("must be one of prepare, "));
  CHECK(said_by("command -v groff >/dev/null && groff -man -ww -z -Tutf8" + files) == "");
  // The date of a page is left out: what is made of one source is the same every day.
  CHECK(said_by("command -v mandoc >/dev/null && mandoc -T lint -W warning" + files + " | grep -v 'missing date'") ==
        "");
}

TEST_CASE("changelog: its newest entry is this version") {
  const std::string changelog = get_file(std::filesystem::path(ENGRAM_SOURCE_DIR) / "CHANGELOG.md");
  const std::size_t at = changelog.find("\n## ");
  REQUIRE(at != std::string::npos);
  CHECK_THAT(changelog.substr(at), StartsWith("\n## " + std::string(build_facts().version) + " ("));
}

}  // namespace engram::harness::manual_page_test
