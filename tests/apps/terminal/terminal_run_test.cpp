/// Runs of the program on a terminal: resized, stopped, gone on with, interrupted.

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/terminal/terminal_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::terminal_run_test {
namespace {

/// A training run without end, and without messages after its first ones.
struct EndlessRun {
  RunFolder folder;
  PseudoTerminal terminal{120};
  TerminalProcess process{
      terminal,
      {"train", "--config", put_file(folder / "config.toml", small_config()).string(), "--data", folder.data().string(),
       "--out", (folder / "run").string(), "--steps", "1000000000", "--set", "training.validate_every=1000000000"}};

  /// Until so many lines with a rate have been shown from now on.
  void wait_for_lines(std::size_t count) {
    const std::size_t from = terminal.bytes().size();
    terminal.read_until([&](const std::string& bytes) {
      std::size_t lines = 0;
      for (std::size_t at = from; (at = bytes.find("\x1b[2mleft", at)) != std::string::npos; ++at) ++lines;
      return lines >= count;
    });
  }
};

}  // namespace

TEST_CASE("terminal: a run that is resized and interrupted leaves as many rows as messages") {
  if (!has_pseudo_terminals()) return;  // where there are none
  EndlessRun run;
  run.wait_for_lines(1);
  CHECK_FALSE(run.terminal.has_messages_alone());
  // It writes nothing meanwhile, but its line stands.
  run.process.send(SIGSTOP);
  REQUIRE(WIFSTOPPED(run.process.wait()));
  run.terminal.resize(40);
  run.process.send(SIGCONT);
  run.wait_for_lines(1);
  const std::size_t overflown = run.terminal.screen().overflown();
  run.terminal.type("\x03");  // Ctrl-C
  const int status = run.process.wait();
  INFO(run.terminal.bytes());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(run.terminal.has_messages_alone());
  const std::vector<std::string> rows = run.terminal.screen().rows();
  const auto stopping = std::ranges::find(rows, "engram: stopping after this step, then s");
  REQUIRE(rows.end() - stopping > 3);
  // It takes three rows.
  CHECK_THAT(stopping[3], StartsWith("engram: interrupted at step "));
  CHECK(run.terminal.screen().overflown() > overflown);  // by these
}

TEST_CASE("terminal: a run that is stopped takes its line away, and shows it when it goes on") {
  if (!has_pseudo_terminals()) return;  // where there are none
  EndlessRun run;
  run.wait_for_lines(1);
  run.terminal.type("\x1a");  // Ctrl-Z
  int status = run.process.wait();
  INFO(run.terminal.bytes());
  REQUIRE(WIFSTOPPED(status));
  CHECK(WSTOPSIG(status) == SIGTSTP);
  CHECK(run.terminal.has_messages_alone());
  run.process.send(SIGCONT);
  run.wait_for_lines(1);
  run.terminal.type("\x1c");  // Ctrl-\, which does not save
  status = run.process.wait();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGQUIT);
  CHECK(run.terminal.has_messages_alone());
}

}  // namespace engram::harness::terminal_run_test
