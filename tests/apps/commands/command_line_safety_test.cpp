/// Runs of the program are safe against Ctrl-C, a full disk and SIGKILL at any moment.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/files/json.hpp"
#include "core/files/safetensors.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::command_line_safety_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndless = "1000000000";

/// A run and the commands on it.
struct RunOfProgram {
  explicit RunOfProgram(const char* checkpoint_every) : checkpoint_every_(checkpoint_every) {
    put_file(folder / "config.toml", small_config());
  }
  Arguments start(const std::string& steps, std::string_view name = "run") const {
    return {"train",
            "--config",
            (folder / "config.toml").string(),
            "--data",
            folder.data().string(),
            "--out",
            (folder / name).string(),
            "--steps",
            steps,
            "--set",
            "training.checkpoint_every=" + checkpoint_every_,
            "--set",
            "training.report_every=1",
            "--set",
            "training.validate_every=1000000"};
  }
  Arguments resume(const std::string& steps) const {
    return {"train",   "--resume", "--data", folder.data().string(), "--out", (folder / "run").string(),
            "--steps", steps};
  }
  fs::path checkpoint(std::string_view name = "run") const { return folder / name / "checkpoint/model.safetensors"; }
  fs::path partial() const { return checkpoint().string() + ".partial"; }
  std::int64_t saved_step() const { return std::stoll(SafetensorsFile(checkpoint()).metadata().at("engram.step")); }
  RunFolder folder;

 private:
  std::string checkpoint_every_;
};

/// Changes whenever another file takes the path; 0 when there is none.
ino_t identity(const fs::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

/// Waits until `happened`; fails when the program ends first.
template <class Condition>
void wait_for(Process& process, Condition happened) {
  while (!happened()) {
    if (!process.running() && !happened()) FAIL("the program ended early: " << process.wait().err);
    ::usleep(20);
  }
}

/// Weights, optimiser state and caches of training, bit for bit. Caches of validation are left out: a run that was
/// complete once has validated once more.
void check_same_tensors(const fs::path& left, const fs::path& right) {
  const SafetensorsFile a(left), b(right);
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) {
    INFO(name);
    if (name.starts_with("state/valid")) continue;
    const auto other = b.tensors().find(name);
    REQUIRE(other != b.tensors().end());
    const auto bytes = a.bytes(tensor), other_bytes = b.bytes(other->second);
    CHECK(std::equal(bytes.begin(), bytes.end(), other_bytes.begin(), other_bytes.end()));
  }
}

/// Finishes the run a few steps on, and compares it with one that was never stopped.
void check_as_if_never_stopped(const RunOfProgram& run) {
  const std::string steps = std::to_string(run.saved_step() + 4);
  const ProcessResult resumed = run_engram(run.resume(steps));
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(run_engram(run.start(steps, "never-stopped")).exit_code == 0);
  check_same_tensors(run.checkpoint(), run.checkpoint("never-stopped"));
}

/// Waits until the run has saved a new checkpoint and is at the next; usually inside of saving it.
void wait_for_save(Process& process, const RunOfProgram& run) {
  const ino_t before = identity(run.checkpoint());
  wait_for(process, [&] { return identity(run.checkpoint()) != before; });
  ino_t last = identity(run.checkpoint());
  int checkpoints = 0;
  // On a disk too fast for us to see a partial file, any moment will do.
  wait_for(process, [&] {
    checkpoints += identity(run.checkpoint()) == last ? 0 : 1;
    last = identity(run.checkpoint());
    return fs::exists(run.partial()) || checkpoints > 100;
  });
}

void kill_while_saving(int times) {
  const RunOfProgram run("1");
  std::int64_t last = 0;
  int during_save = 0;
  for (int i = 0; i < times; ++i) {
    INFO("kill number " << i);
    Process process(i == 0 ? run.start(kEndless) : run.resume(kEndless));
    wait_for_save(process, run);
    // Spread over the time of a save.
    ::usleep(static_cast<unsigned>(i * 7919 % 1000));
    process.send(SIGKILL);
    REQUIRE(process.wait().signal == SIGKILL);
    during_save += fs::exists(run.partial()) ? 1 : 0;
    const std::int64_t step = run.saved_step();
    REQUIRE(step > last);
    last = step;
  }
  CHECK(during_save > 0);
  check_as_if_never_stopped(run);
}

}  // namespace

TEST_CASE("command line: SIGINT and SIGTERM save, exit with 130, and lose nothing") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const RunOfProgram run("1000000");
    Process process(run.start(kEndless));
    const fs::path metrics = run.folder / "run/metrics.jsonl";
    wait_for(process, [&] { return get_file(metrics).find("\"train\"") != std::string::npos; });
    process.send(signal);
    const ProcessResult stopped = process.wait();
    INFO(stopped.err);
    CHECK(stopped.exit_code == 130);
    CHECK_THAT(stopped.err, ContainsSubstring("--resume"));
    CHECK(run.saved_step() >= 1);
    check_as_if_never_stopped(run);
  }
}

TEST_CASE("command line: of two first starts in one new folder the later one leaves the other's run alone") {
  const RunOfProgram run("5");
  const fs::path pipe = run.folder / "config.pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Arguments waiting = run.start("5");
  waiting.at(2) = pipe.string();
  Process later(waiting);
  // It reads its configuration when it has seen that there is no run yet.
  int config = -1;
  wait_for(later, [&] { return (config = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; });
  REQUIRE(run_engram(run.start("10")).exit_code == 0);
  const std::string before = get_file(run.checkpoint()), metrics = get_file(run.folder / "run/metrics.jsonl");
  const std::string text = small_config();
  REQUIRE(::write(config, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(config);
  const ProcessResult refused = later.wait();
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("must be a new folder, got one with a run in it"));
  CHECK(get_file(run.checkpoint()) == before);
  CHECK(get_file(run.folder / "run/metrics.jsonl") == metrics);
}

TEST_CASE("command line: a full disk while saving leaves the checkpoint before it") {
  const RunOfProgram run("5");
  REQUIRE(run_engram(run.start("5")).exit_code == 0);
  const std::string before = get_file(run.checkpoint());
  const ProcessResult failed = run_engram(run.resume("50"), {.largest_file = before.size() / 2, .stdout_path = ""});
  INFO(failed.err);
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.err, ContainsSubstring("engram: error: ") && ContainsSubstring(run.checkpoint().string()) &&
                             ContainsSubstring("too large"));
  CHECK(get_file(run.checkpoint()) == before);
  CHECK_FALSE(fs::exists(run.partial()));
  check_as_if_never_stopped(run);
}

TEST_CASE("command line: a full disk while preparing leaves the data before it") {
  const RunFolder folder;
  const std::string other = put_file(folder / "other", small_text(9000, 5)).string();
  const std::string before = get_file(folder.data() / "train.tokens");
  const ProcessResult failed = run_engram({"prepare", "--text", other, "--out", folder.data().string()},
                                          {.largest_file = 1000, .stdout_path = ""});
  INFO(failed.err);
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.err, ContainsSubstring("too large"));
  CHECK(get_file(folder.data() / "train.tokens") == before);
  CHECK_NOTHROW(data::DataSet::open(folder.data()));
}

TEST_CASE("command line: a run that is killed while saving goes on from its checkpoint") { kill_while_saving(8); }

TEST_CASE("command line: killed a hundred times while saving, a run ends as if it never was", "[slow]") {
  kill_while_saving(100);
}

}  // namespace engram::harness::command_line_safety_test
