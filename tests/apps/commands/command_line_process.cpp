#include "tests/apps/commands/command_line_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace engram::harness {
namespace {

/// Runs in the child: only calls that are safe between fork and exec.
[[noreturn]] void become_engram(char* const* arguments, const char* in, const char* out, const char* err,
                                const ProcessLimits& limits) {
  const int out_file = ::open(out, O_WRONLY | O_CREAT, 0600), err_file = ::open(err, O_WRONLY | O_CREAT, 0600);
  const int in_file = ::open(in, O_RDONLY);
  if (in_file < 0 || ::dup2(in_file, 0) < 0 || out_file < 0 || err_file < 0 || ::dup2(out_file, 1) < 0 ||
      ::dup2(err_file, 2) < 0)
    ::_exit(126);
  if (limits.largest_file) {
    // Ignored, it makes the write fail; otherwise it would end the process.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{*limits.largest_file, *limits.largest_file};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  }
  heed_signals();
  for (const int signal : limits.ignored) ::signal(signal, SIG_IGN);
  for (int stream = 0; limits.without_streams && stream < 3; ++stream) ::close(stream);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

void heed_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
}

std::string program_of_build() {
  const char* const given = ::getenv("ENGRAM_PROGRAM");
  return given != nullptr ? given : ENGRAM_PROGRAM;
}

Process::Process(const Arguments& arguments, const ProcessLimits& limits)
    : out_path_(limits.stdout_path.empty() ? (folder_ / "out").string() : limits.stdout_path),
      err_path_((folder_ / "err").string()) {
  // Waiting threads would otherwise spin on the cores that the tests run on.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program_of_build());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string in_path = limits.stdin_path.empty() ? "/dev/null" : limits.stdin_path;
  id_ = ::fork();
  if (id_ < 0) throw std::runtime_error("no process could be started");
  if (id_ == 0) become_engram(pointers.data(), in_path.c_str(), out_path_.c_str(), err_path_.c_str(), limits);
}

Process::~Process() {
  if (running()) {
    send(SIGKILL);
    wait();
  }
}

bool Process::running() {
  int status = 0;
  if (!status_ && ::waitpid(id_, &status, WNOHANG) == id_) status_ = status;
  return !status_;
}

void Process::send(int signal) { ::kill(id_, signal); }

ProcessResult Process::wait() {
  int status = 0;
  if (!status_) {
    if (::waitpid(id_, &status, 0) != id_) throw std::runtime_error("the process cannot be waited for");
    status_ = status;
  }
  ProcessResult result;
  if (WIFEXITED(*status_)) result.exit_code = WEXITSTATUS(*status_);
  if (WIFSIGNALED(*status_)) result.signal = WTERMSIG(*status_);
  if (std::filesystem::is_regular_file(out_path_)) result.out = get_file(out_path_);
  result.err = get_file(err_path_);
  return result;
}

ProcessResult run_engram(const Arguments& arguments, const ProcessLimits& limits) {
  return Process(arguments, limits).wait();
}

}  // namespace engram::harness
