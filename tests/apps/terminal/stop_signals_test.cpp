/// Signals end runs in order, and harm none.

#include "apps/terminal/signals.hpp"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/signal_storm.hpp"

namespace engram::harness::stop_signals_test {
namespace {

/// Widths whose products go to the library for large ones, and are no multiple of a vector.
std::string config_of(const std::string& family) {
  std::string model = "[model]\nfamily = \"" + family + "\"\n";
  if (family == "recurrent")
    model += "width = 99\nembedding_width = 99\n";
  else
    model += "layers = 2\nwidth = 100\nheads = 2\n";
  if (family == "all_attention") model += "slots = 30\nmax_span = 48\nramp = 8\n";
  if (family == "transformer_xl") model += "inner = 100\nmemory = 32\n";
  if (family == "product_key") model += "inner = 100\nposition_rows = 32\n";
  return model +
         "[optimizer]\nkind = \"adam\"\n[schedule]\nrate = 0.001\nsteps = 6\n"
         "[training]\nbatch = 8\nblock = 32\nreport_every = 1\nvalidate_every = 1000000\n";
}

/// A run of the program that has done a step when wait_for_a_step() returns.
struct LongRun {
  RunFolder folder;
  std::filesystem::path out = folder / "run";
  Arguments arguments{"train",
                      "--config",
                      put_file(folder / "config.toml", small_config()).string(),
                      "--data",
                      folder.data().string(),
                      "--out",
                      out.string(),
                      "--steps",
                      "1000000000",
                      "--set",
                      "training.report_every=1"};

  void wait_for_a_step(Process& process) const {
    while (!std::filesystem::exists(out / "metrics.jsonl") ||
           get_file(out / "metrics.jsonl").find("\"train\"") == std::string::npos) {
      if (!process.running()) FAIL("the program ended early: " << process.wait().err);
      ::usleep(100);
    }
  }
  bool saved() const { return std::filesystem::exists(checkpoint_path(out, CheckpointKind::newest)); }
};

}  // namespace

TEST_CASE("signals: a rank that has stopped with the others ignores its own copy that comes late", "[ranks]") {
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  const auto handlers = [&] {
    std::vector<void (*)(int)> found;
    for (const int signal : kSignals) {
      struct sigaction action = {};
      ::sigaction(signal, nullptr, &action);
      found.push_back(action.sa_handler);
    }
    return found;
  };
  const auto own = handlers();  // of who has started the tests
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  const auto before = handlers();
  const auto interrupted = [](const std::function<bool()>&) { throw Interrupted("saved"); };
  CHECK_THROWS_AS(run_until_stopped(true, interrupted), Interrupted);
  CHECK(handlers() == before);
  CHECK_NOTHROW(run_until_stopped(false, [](const std::function<bool()>& stop) { stop(); }));
  CHECK(handlers() == before);
  CHECK_THROWS_AS(run_until_stopped(false, interrupted), Interrupted);
  for (const auto handler : handlers()) CHECK(handler == SIG_IGN);
  for (std::size_t i = 0; i < own.size(); ++i) std::signal(kSignals[i], own[i]);
}

TEST_CASE("signals: a run of any family that is interrupted all the time ends with the same bits") {
  const std::string family = GENERATE(std::string("all_attention"), std::string("transformer_xl"),
                                      std::string("product_key"), std::string("recurrent"));
  CAPTURE(family);
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "undisturbed");
  options.config = put_file(folder / "wide.toml", config_of(family));
  run_training(options, never());
  const std::string undisturbed = newest_checkpoint(options);
  std::int64_t signals = 0;
  for (int run = 0; signals < 300; ++run) {
    options.out = folder / text("disturbed-", run);
    const SignalStorm storm;
    run_training(options, never());
    signals += storm.signals();
    REQUIRE(newest_checkpoint(options) == undisturbed);
  }
}

TEST_CASE("signals: one saves and says how to end at once, two of them end at once") {
  const LongRun run;
  Process process(run.arguments);
  run.wait_for_a_step(process);
  // Stopped, it takes both when it goes on: the second before the step is finished.
  process.send(SIGSTOP);
  process.send(SIGTERM);
  process.send(SIGINT);
  process.send(SIGCONT);
  const ProcessResult ended = process.wait();
  INFO(ended.err);
  CHECK((ended.signal == SIGINT || ended.signal == SIGTERM));
  CHECK_FALSE(run.saved());
  CHECK_THAT(ended.err, ContainsSubstring("engram: stopping after this step, then saving; once more: at once"));
}

TEST_CASE("signals: a lost terminal and a lost reader of messages lose no run") {
  const LongRun run;
  SECTION("SIGHUP saves") {
    Process process(run.arguments);
    run.wait_for_a_step(process);
    process.send(SIGHUP);
    CHECK(process.wait().exit_code == 130);
  }
  SECTION("SIGUSR1, which launchers hand on, saves") {
    Process process(run.arguments);
    run.wait_for_a_step(process);
    process.send(SIGUSR1);
    CHECK(process.wait().exit_code == 130);
  }
  SECTION("SIGPIPE does not end it") {
    Process process(run.arguments);
    run.wait_for_a_step(process);
    process.send(SIGPIPE);
    ::usleep(20000);
    REQUIRE(process.running());
    process.send(SIGTERM);
    CHECK(process.wait().exit_code == 130);
  }
  CHECK(run.saved());
}

TEST_CASE("signals: those that the caller ignores stay ignored") {
  const LongRun run;
  Process process(run.arguments, {.largest_file = {}, .stdout_path = "", .ignored = {SIGINT}});
  run.wait_for_a_step(process);
  process.send(SIGINT);
  ::usleep(20000);
  REQUIRE(process.running());
  process.send(SIGTERM);
  CHECK(process.wait().exit_code == 130);
}

TEST_CASE("a program without streams writes what it prints nowhere else") {
  LongRun run;
  run.arguments[8] = "5";
  const ProcessResult done =
      run_engram(run.arguments, {.largest_file = {}, .stdout_path = "", .ignored = {}, .without_streams = true});
  CHECK(done.exit_code == 0);
  const std::string metrics = get_file(run.out / "metrics.jsonl");
  REQUIRE_FALSE(metrics.empty());
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) CHECK(line.front() == '{');
}

}  // namespace engram::harness::stop_signals_test
