#pragma once
/// Runs the built program `engram` as a process of its own, the way a user does.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/temporary_folder.hpp"

namespace engram::harness {

using Arguments = std::vector<std::string>;

/// Signals that end a program do so again in this process, a child before it becomes that program: who starts the tests
/// may ignore some, as nohup and jobs in the background do. Safe between fork and exec.
void heed_signals();

/// The program of this build, as CTest says it: these tests may be compiled by another one.
std::string program_of_build();

struct ProcessLimits {
  /// Bytes that a file may have; writing more fails as on a full disk does (with another reason).
  std::optional<std::uint64_t> largest_file;
  /// Where stdout goes; empty: it is kept.
  std::string stdout_path;
  /// Signals that are ignored when it starts.
  std::vector<int> ignored;
  /// stdin, stdout and stderr are closed when it starts.
  bool without_streams = false;
  /// What stdin is; empty: nothing comes from it.
  std::string stdin_path{};
};

struct ProcessResult {
  int exit_code = -1;  ///< -1: ended by a signal
  int signal = 0;
  std::string out, err;
};

/// A started program; ended with SIGKILL if it is still running when this goes away.
class Process {
 public:
  explicit Process(const Arguments& arguments, const ProcessLimits& limits = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// False once it has ended; never waits.
  bool running();
  void send(int signal);
  /// Waits for its end.
  ProcessResult wait();

 private:
  TemporaryFolder folder_;
  std::string out_path_, err_path_;
  pid_t id_ = -1;
  std::optional<int> status_;
};

/// Start and end.
ProcessResult run_engram(const Arguments& arguments, const ProcessLimits& limits = {});

}  // namespace engram::harness
