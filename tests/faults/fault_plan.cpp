#include "tests/faults/fault_plan.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace engram::faults {
namespace {

constexpr int kKinds = static_cast<int>(Kind::count);
constexpr const char* kNames[kKinds] = {"write",    "read",  "flush",  "rename", "open",   "map",
                                        "truncate", "close", "memory", "folder", "remove", "print"};

struct NamedError {
  const char* name;
  int error;
};
constexpr NamedError kErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},  {"EMFILE", EMFILE},
                                  {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM}, {"EACCES", EACCES}};

std::atomic<long> counts[kKinds];

// Allocations are asked about before anything of C++ was started: this is a constant until the environment was read.
std::atomic<std::size_t> least_bytes{~std::size_t{0}};

/// A plan that nobody can follow must not look like a program that survived.
[[noreturn]] void refuse(const char* text) {
  constexpr char kWords[] = "fault library: ENGRAM_FAULT must be KIND:N:ERROR, got ";
  ::syscall(SYS_write, 2, kWords, sizeof kWords - 1);
  ::syscall(SYS_write, 2, text, std::strlen(text));
  ::syscall(SYS_write, 2, "\n", 1);
  ::_exit(99);
}

}  // namespace

Plan::Plan() {
  if (const char* const path = std::getenv("ENGRAM_FAULT_LIST"))
    list_ = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const char* const asked = std::getenv("ENGRAM_FAULT");
  if (asked == nullptr) return;
  char kind[16] = "", error[16] = "";
  if (std::sscanf(asked, "%15[a-z]:%ld:%15[A-Za-z]", kind, &first_, error) != 3 || first_ < 1) refuse(asked);
  for (int i = 0; i < kKinds; ++i)
    if (std::strcmp(kind, kNames[i]) == 0) kind_ = static_cast<Kind>(i);
  if (kind_ == Kind::count) refuse(asked);
  later_too_ = asked[std::strlen(asked) - 1] == '+';
  verdict_ = Verdict::fail;
  if (std::strcmp(error, "half") == 0)
    verdict_ = Verdict::half;
  else if (std::strcmp(error, "KILLHALF") == 0)
    verdict_ = Verdict::half_and_kill;
  else if (std::strcmp(error, "KILL") == 0)
    kills_ = true;
  else
    for (const NamedError& one : kErrors)
      if (std::strcmp(error, one.name) == 0) error_ = one.error;
  if (verdict_ == Verdict::fail && !kills_ && error_ == 0) refuse(asked);
}

Verdict Plan::ask(Kind kind, const char* name, const char* about) {
  const long number = ++counts[static_cast<int>(kind)];
  if (list_ >= 0) write_down(kind, name, about);
  if (kind != kind_ || number < first_ || (number > first_ && !later_too_)) return Verdict::pass;
  if (kills_) ::kill(::getpid(), SIGKILL);
  if (verdict_ == Verdict::fail) errno = error_;
  return verdict_;
}

void Plan::write_down(Kind kind, const char* name, const char* about) const {
  char line[1200];
  const int length = std::snprintf(line, sizeof line, "%s\t%s\t%s\n", kNames[static_cast<int>(kind)], name, about);
  ::syscall(SYS_write, list_, line, length);
}

Plan& plan() {
  static Plan all;
  return all;
}

bool is_large(std::size_t bytes) { return bytes >= least_bytes.load(std::memory_order_relaxed); }

namespace {
// From when the library is loaded on; what was allocated before belongs to the loader.
[[maybe_unused]] const bool memory_is_watched = [] {
  const char* const least = std::getenv("ENGRAM_FAULT_MEMORY");
  plan();
  least_bytes = least != nullptr ? std::strtoull(least, nullptr, 10) : std::size_t{65536};
  return true;
}();
}  // namespace

}  // namespace engram::faults
