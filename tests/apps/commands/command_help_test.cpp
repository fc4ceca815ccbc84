/// The help of every command: no wider than what shows it, with what is required, in the same words everywhere.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::command_help_test {
namespace {

struct WholeProgram : CommandLine {
  WholeProgram() : CommandLine("engram", "Engram: language models with memory", "1") { add_all_commands(commands()); }
};

/// Columns of the widest line; 0 where there is none.
std::size_t widest(const std::string& help) {
  std::size_t most = 0;
  for (std::size_t start = 0; start < help.size();) {
    const std::size_t end = std::min(help.find_first_of("\r\n", start), help.size());
    most = std::max(most, end - start);
    start = end + 1;
  }
  return most;
}

/// The option's line and those that belong to it.
std::string entry_of(const std::string& help, const std::string& option) {
  const std::size_t start = help.find("\n  " + option + " ");
  if (start == std::string::npos) return "";
  std::size_t end = start + 1;
  do end = help.find('\n', end + 1);
  while (end != std::string::npos && help.substr(end + 1, 4) == "    ");
  return help.substr(start + 1, end - start - 1);
}

}  // namespace

TEST_CASE("help: no line is wider than the columns, at any width") {
  const WholeProgram program;
  std::vector<std::string> commands = program.names();
  commands.emplace_back();
  for (const std::size_t columns : {40, 57, 80, 120, 300})
    for (const std::string& command : commands) {
      const std::string help = program.help(columns, command);
      CAPTURE(command, columns);
      CHECK(widest(help) <= std::min<std::size_t>(columns, 120));
      CHECK(widest(help) > 30);
      CHECK(help.find(" \n") == std::string::npos);
      CHECK_THAT(help, ContainsSubstring("\nUsage: engram " + command));
    }
  CHECK(program.help(3, "bench") == program.help(40, "bench"));
}

TEST_CASE("help: commands are in groups, each in one line of 80 columns") {
  const WholeProgram program;
  const std::string help = program.help(80);
  for (const char* title : {"Before training", "Training", "Using a model", "Studying a model", "Measuring speed"})
    CHECK_THAT(help, ContainsSubstring("\n\n" + std::string(title) + ":\n  "));
  for (const std::string& command : program.names()) {
    INFO(command);
    const std::string entry = entry_of(help, command);
    CHECK(entry.size() > 20);
    CHECK(entry.find('\n') == std::string::npos);
  }
}

TEST_CASE("help: a usage line says what is required, and values have names in capitals") {
  const WholeProgram program;
  const auto usage = [&](const std::string& command, const std::string& line) {
    CHECK_THAT(program.help(120, command), ContainsSubstring("\nUsage: engram " + command + " " + line + "\n"));
  };
  usage("evaluate", "RUN --data FOLDER [OPTIONS]");
  usage("train", "--data FOLDER --out FOLDER [OPTIONS]");
  usage("keys", "[FAMILY] [OPTIONS]");
  usage("map", "[RUN] --out FOLDER [OPTIONS]");
  usage("lengths", "RUN... --data FOLDER [OPTIONS]");
  usage("import", "WEIGHTS --from PROGRAM --out FILE [OPTIONS]");
  usage("cbt", "[RUN] --questions FILE... [OPTIONS]");
  for (const std::string& command : program.names()) {
    const std::string help = program.help(120, command);
    INFO(command);
    for (const char* type : {"INT", "FLOAT", "BOOLEAN", "NONNEGATIVE", "POSITIVE", "UINT", ":{", "[]", "REQUIRED"})
      CHECK(help.find(type) == std::string::npos);
  }
  const std::string evaluate = program.help(120, "evaluate"), count = program.help(120, "count");
  CHECK(entry_of(evaluate, "--split SPLIT") == "  --split SPLIT         train, valid or test [valid]");
  CHECK(entry_of(evaluate, "--json") == "  --json                print one JSON object");
  CHECK_THAT(entry_of(evaluate, "--cache-lambda X"), EndsWith("below 1 [0.1]"));
  CHECK_THAT(evaluate, ContainsSubstring("\n  --same-length [WORD]  "));
  CHECK_THAT(entry_of(count, "--config CONFIG"), EndsWith("or a name of engram configs (required)"));
  CHECK_THAT(entry_of(count, "--target N"), EndsWith("(with --solve)"));
  CHECK_THAT(count, ContainsSubstring("\n  --set KEY=VALUE...  "));
  CHECK_THAT(entry_of(program.help(120, "bench"), "--product-size N"),
             EndsWith("(without --against-vanilla, --cost) [4000]"));
  // An old spelling is understood, and not shown.
  CHECK(program.help(120, "prepare").find("--rule ") == std::string::npos);
}

TEST_CASE("help: words are wrapped, and what is too wide by itself is cut") {
  using Lines = std::vector<std::string>;
  CHECK(wrapped_text("one two  three\nfour", 8) == Lines{"one two", "three", "four"});
  CHECK(wrapped_text("", 8) == Lines{""});
  CHECK(wrapped_text("a 16384,65536,262144 b", 10) == Lines{"a", "16384,", "65536,", "262144 b"});
  CHECK(wrapped_text("abcdefghijkl", 5) == Lines{"abcde", "fghij", "kl"});
  CHECK(wrapped_parts({"Usage:", "a b", "c d", "e f"}, 10, 4) == Lines{"Usage: a b", "c d", "e f"});
  CHECK(hanging({"a", "b", ""}, 2) == "a\n  b\n\n");
}

TEST_CASE("help: is as wide as the terminal, else as COLUMNS says, else 80") {
  const char* const given = ::getenv("COLUMNS");
  const std::string before = given == nullptr ? "" : given;
  const auto columns = [](const char* value) {
    ::setenv("COLUMNS", value, 1);
    return widest(run_engram({"help", "count"}).out);
  };
  CHECK(columns("61") > 56);
  CHECK(columns("61") <= 61);
  CHECK(columns("none") == columns("80"));
  CHECK(columns("7") == columns("40"));

  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal >= 0) {  // where there are any
    REQUIRE((::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
    winsize size{};
    size.ws_col = 70;
    REQUIRE(::ioctl(terminal, TIOCSWINSZ, &size) == 0);
    // Kept open, so that what was written is there when the program has ended.
    const int other_end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
    run_engram({"help", "gradients"}, {.largest_file = {}, .stdout_path = ::ptsname(terminal)});
    char bytes[4096];
    const ssize_t count = ::read(terminal, bytes, sizeof(bytes));
    REQUIRE(count > 0);
    const std::size_t most = widest(std::string(bytes, static_cast<std::size_t>(count)));
    CHECK(most > 56);  // COLUMNS says 40 by now
    CHECK(most <= 70);
    ::close(other_end);
    ::close(terminal);
  }
  given == nullptr ? ::unsetenv("COLUMNS") : ::setenv("COLUMNS", before.c_str(), 1);
}

}  // namespace engram::harness::command_help_test
