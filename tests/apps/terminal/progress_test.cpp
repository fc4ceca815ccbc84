/// Lines of progress fit the terminal and leave no rows behind.

#include "apps/run/training/progress.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/log.hpp"
#include "core/terminal_line.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/terminal/terminal_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::progress_test {
namespace {

using Rows = std::vector<std::string>;

const ProgressLine kLine{.step = 1200,
                         .steps = 60000,
                         .loss = 1.0921,
                         .rate = 6.25e-4,
                         .tokens_per_second = 81234,
                         .mean_span = 97.34,
                         .seconds_left = 3723,
                         .valid_loss = 1.2};

std::string fitted(std::int64_t columns, const std::string& run = "") {
  return fitted_progress(kLine, run, columns, false);
}

/// stderr, as a terminal that takes lines, and a line of progress on it.
struct Shown {
  explicit Shown(std::size_t columns, Narrowing narrowing = Narrowing::wraps,
                 const OtherStderr::Variables& variables = {})
      : terminal(columns, narrowing), as_stderr(terminal.open(), variables) {}

  /// The rows that a person sees.
  Rows rows() {
    terminal.read();
    return terminal.screen().rows();
  }
  const std::string& bytes() {
    terminal.read();
    return terminal.bytes();
  }
  PseudoTerminal terminal;
  OtherStderr as_stderr;
};

/// Reports of training, and work of which nothing is shown, where no line may be written over.
void show_reports() {
  Progress progress;
  WorkProgress work("reading", "bytes", std::chrono::milliseconds(0));
  CHECK_FALSE(progress.wants(false));
  CHECK(progress.wants(true));
  progress.show(kLine);
  work.at(1, 2);
  progress.note("done");
}

}  // namespace

TEST_CASE("progress: a line of training has what matters most first, and a bar where there is room") {
  CHECK(fitted(39) == "step 1200/60000 left 1:02:03 bpc 1.5756");
  CHECK(fitted(79) == "step 1200/60000 left 1:02:03 bpc 1.5756 tokens/s 81234 valid 1.7312 lr 6.25e-04");
  CHECK(fitted(119) ==
        "[                    ] step 1200/60000 left 1:02:03 bpc 1.5756 tokens/s 81234 valid 1.7312 lr 6.25e-04 "
        "span 97.3");
  CHECK(fitted(199) == fitted(119));
  // Nothing is shown in the place of what matters more.
  CHECK(fitted(78) == "step 1200/60000 left 1:02:03 bpc 1.5756 tokens/s 81234 valid 1.7312");
  CHECK(fitted(79, "2/8") == "run 2/8 step 1200/60000 left 1:02:03 bpc 1.5756 tokens/s 81234 valid 1.7312");
  CHECK(fitted(38) == "1200/60000 left 1:02:03 bpc 1.5756");
  CHECK(fitted(12) == "1200/60000");
  CHECK(fitted(4) == "1200");
  CHECK(fitted(0).empty());
  CHECK(fitted_progress({.step = 0, .steps = 60000}, "", 79, false) == "step 0/60000");
  ProgressLine word = kLine;
  word.step = 30000;
  word.kind = data::TokenKind::word;
  word.mean_span.reset();
  word.valid_loss.reset();
  CHECK(fitted_progress(word, "", 79, false) ==
        "[====     ] step 30000/60000 left 1:02:03 ppl 2.9805 tokens/s 81234 lr 6.25e-04");
  for (std::int64_t columns = 0; columns < 220; ++columns) {
    const std::string line = fitted(columns, "12/100");
    CHECK(std::ssize(line) <= columns);
    // Colours take no room, and are all that a line with them has more.
    std::string coloured = fitted_progress(kLine, "12/100", columns, true);
    for (const char* sequence : {"\x1b[2m", "\x1b[0m"})
      for (std::size_t at; (at = coloured.find(sequence)) != std::string::npos;) coloured.erase(at, 4);
    CHECK(coloured == line);
  }
  CHECK(fitted_progress(kLine, "", 39, true) ==
        "\x1b[2mstep\x1b[0m 1200/60000 \x1b[2mleft\x1b[0m 1:02:03 \x1b[2mbpc\x1b[0m 1.5756");
}

TEST_CASE("progress: a line of other work says how much of it is done and how long it still takes") {
  const WorkState scored{
      .what = "scored", .unit = "tokens", .done = 1200, .all = 15000, .per_second = 800, .seconds = 1.5};
  CHECK(fitted_work(scored, 59, false) == "scored 1200 of 15000 tokens left 0:17 tokens/s 800");
  CHECK(fitted_work(scored, 79, false) == "[=                   ] scored 1200 of 15000 tokens left 0:17 tokens/s 800");
  CHECK(fitted_work(scored, 39, false) == "scored 1200 of 15000 tokens left 0:17");
  CHECK(fitted_work(scored, 29, false) == "1200 of 15000 left 0:17");
  const WorkState read{.what = "reading 'a\nb\xff'", .unit = "bytes", .done = 12'300'000, .all = 0, .seconds = 14400};
  CHECK(fitted_work(read, 79, false) == "reading 'a?b?' 12.3 MB taken 4:00:00");
  // Wide characters are two columns each, and are not cut in halves.
  const WorkState wide{.what = "\u9577\u3044", .seconds = 3};
  CHECK(columns_of(wide.what) == 4);
  CHECK(columns_of("na\u00efve") == 5);
  CHECK(fitted_work(wide, 9, false) == "\u9577\u3044 0:03");
  CHECK(fitted_work(wide, 8, false) == "0:03");
  CHECK(fitted_line(std::vector<LinePart>{{"", "\u9577\u3044"}}, {.columns = 3}) == "\u9577");
}

TEST_CASE("progress: on a terminal there are as many rows as messages") {
  if (!has_pseudo_terminals()) return;  // where there are none
  const std::size_t columns = GENERATE(40, 80, 120, 200);
  CAPTURE(columns);
  Shown shown(columns);
  Rows messages;
  {
    Progress progress;
    REQUIRE(progress.wants(false));
    for (const std::int64_t step : {9, 10, 59999, 11}) {
      ProgressLine line = kLine;
      line.step = step;
      progress.show(line);
      progress.show(kLine);
      const Rows rows = shown.rows();
      REQUIRE(rows.size() == messages.size() + 1);
      CHECK(rows.back() == fitted(static_cast<std::int64_t>(columns) - 1));
      if (step == 10)
        log(LogLevel::warning, "short");
      else
        progress.note("step " + std::to_string(step));
      messages.push_back(step == 10 ? "engram: warning: short" : "step " + std::to_string(step));
      CHECK(shown.rows() == messages);
    }
    CHECK_FALSE(progress.wants(true));  // so soon
    progress.show(kLine);
  }
  CHECK(shown.rows() == messages);
  CHECK(shown.terminal.screen().overflown() == 0);
}

TEST_CASE("progress: the line of a terminal that became narrower is taken away, however that breaks rows") {
  if (!has_pseudo_terminals()) return;  // where there are none
  const Narrowing narrowing = GENERATE(Narrowing::wraps, Narrowing::cuts);
  Shown shown(120, narrowing);
  Progress progress;
  progress.wants(false);
  progress.note("first");
  progress.show(kLine);
  shown.bytes();
  shown.terminal.resize(40);
  if (narrowing == Narrowing::wraps) REQUIRE(shown.rows().size() == 4);
  SECTION("by the next line") {
    progress.show(kLine);
    CHECK(shown.rows() == Rows{"first", fitted(39)});
    shown.terminal.resize(200);
    progress.show(kLine);
    CHECK(shown.rows() == Rows{"first", fitted(199)});
  }
  SECTION("by a message") {
    progress.note("second");
    CHECK(shown.rows() == Rows{"first", "second"});
  }
}

TEST_CASE("progress: the terminal says how wide it is, then COLUMNS") {
  if (!has_pseudo_terminals()) return;  // where there are none
  Shown shown(80, Narrowing::wraps, {{"COLUMNS", "50"}});
  CHECK(terminal_columns() == 80);
  shown.terminal.resize(0);
  CHECK(terminal_columns() == 50);
  for (const char* bad : {"", "0", "-3", "wide", "50x"}) {
    ::setenv("COLUMNS", bad, 1);
    CHECK(terminal_columns() == 80);
  }
}

TEST_CASE("messages: on a terminal they are wrapped between words, in a file they are not") {
  const std::string message = "the validation split of 1001 tokens is short\n  it is read so";
  {
    const TemporaryFolder folder;
    const std::filesystem::path path = put_file(folder / "err", "");
    {
      const OtherStderr as_file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      log(LogLevel::warning, message);
    }
    CHECK(get_file(path) == "engram: warning: " + message + "\n");
  }
  if (!has_pseudo_terminals()) return;  // where there are none
  Shown shown(44);
  log(LogLevel::warning, message);
  CHECK(shown.rows() == Rows{"engram: warning: the validation split of", "  1001 tokens is short", "  it is read so"});
}

TEST_CASE("progress: a file has reports") {
  const TemporaryFolder folder;
  const std::filesystem::path path = put_file(folder / "err", "");
  {
    const OtherStderr as_file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    show_reports();
  }
  CHECK(get_file(path) == progress_text(kLine) + "\ndone\n");
}

TEST_CASE("progress: NO_COLOR leaves colours out, TERM=dumb whatever is no text") {
  if (!has_pseudo_terminals()) return;  // where there are none
  SECTION("colours") {
    Shown shown(80, Narrowing::wraps, {{"NO_COLOR", ""}});
    Progress progress;
    progress.wants(false);
    progress.show(kLine);
    CHECK_THAT(shown.bytes(), ContainsSubstring("\x1b[2mstep\x1b[0m 1200/60000"));
  }
  SECTION("none") {
    Shown shown(80, Narrowing::wraps, {{"NO_COLOR", "1"}});
    Progress progress;
    progress.wants(false);
    progress.show(kLine);
    CHECK(shown.bytes().find('m', shown.bytes().find('\x1b')) == std::string::npos);
    CHECK(shown.rows() == Rows{fitted(79)});
  }
  SECTION("dumb") {
    Shown shown(120, Narrowing::wraps, {{"TERM", "dumb"}});
    show_reports();
    CHECK(shown.bytes() == progress_text(kLine) + "\r\ndone\r\n");
  }
}

TEST_CASE("progress: work that takes long shows a line, which messages, results and errors take away") {
  if (!has_pseudo_terminals()) return;  // where there are none
  Shown shown(60);
  const auto wait_for = [&shown](const std::string& text) {
    shown.terminal.read_until([&text](const std::string& bytes) { return bytes.find(text) != std::string::npos; });
  };
  SECTION("a message while it goes on, and an error") {
    try {
      WorkProgress progress("reading", "", std::chrono::milliseconds(0));
      wait_for("0:00");
      log(LogLevel::info, "a message");
      progress.begin("scored", "tokens");
      progress.at(5, 10);
      wait_for("5 of 10");
      CHECK(shown.rows() == Rows{"engram: a message", "[==========          ] scored 5 of 10 tokens"});
      throw std::runtime_error("an error");
    } catch (const std::runtime_error& error) {
      CHECK(shown.rows() == Rows{"engram: a message"});
      log(LogLevel::warning, error.what());
    }
    CHECK(shown.rows() == Rows{"engram: a message", "engram: warning: an error"});
  }
  SECTION("not before its time") {
    WorkProgress progress("reading", "", std::chrono::hours(1));
    progress.at(1, 2);
    ::usleep(20000);
    progress.end();
    CHECK(shown.bytes().empty());
  }
  SECTION("what is written beside it") {
    show_terminal_line("a line");
    CHECK(shown.rows() == Rows{"a line"});
    beside_terminal_line([&shown] { CHECK(shown.rows().empty()); });
  }
}

TEST_CASE("progress: a run on a terminal leaves its messages there, and nothing else") {
  if (!has_pseudo_terminals()) return;  // where there are none
  const std::size_t columns = GENERATE(40, 120);
  CAPTURE(columns);
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.run = "2/8";
  options.overrides = {"schedule.steps=6", "training.validate_every=3"};
  Shown shown(columns);
  std::size_t most = 0;
  run_training(options, [&] {
    ::usleep(40000);  // so that there is more than one line
    most = std::max(most, shown.rows().size());
    return false;
  });
  const Rows rows = shown.rows();
  CHECK(shown.terminal.has_messages_alone());
  CHECK_THAT(shown.bytes(), ContainsSubstring("0/6"));
  CHECK_THAT(shown.bytes(), ContainsSubstring("\x1b[2mleft"));
  CHECK(most <= rows.size() + 1);
  for (const std::string& row : rows) CHECK_FALSE(row.starts_with("run"));
}

}  // namespace engram::harness::progress_test
