#include "core/held_signals.hpp"

#include <pthread.h>

#include <thread>

#include "tests/harness/catch.hpp"

namespace engram::held_signals_test {
namespace {

bool is_held(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

}  // namespace

TEST_CASE("held signals: while one lives, and not those that a thread causes itself") {
  REQUIRE_FALSE(is_held(SIGINT));
  {
    const HeldSignals outer;
    CHECK(is_held(SIGINT));
    CHECK(is_held(SIGALRM));
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPIPE}) CHECK_FALSE(is_held(own));
    { const HeldSignals inner; }
    CHECK(is_held(SIGINT));
  }
  CHECK_FALSE(is_held(SIGINT));
}

TEST_CASE("held signals: what was held before stays held") {
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, nullptr);
  { const HeldSignals held; }
  CHECK(is_held(SIGUSR1));
  CHECK_FALSE(is_held(SIGINT));
  pthread_sigmask(SIG_UNBLOCK, &user, nullptr);
}

TEST_CASE("held signals: for good, on one thread and those it starts") {
  bool own = false, started = false, after_inner = false;
  std::thread([&] {
    hold_signals_for_good();
    { const HeldSignals inner; }
    own = is_held(SIGTERM);
    std::thread([&] { started = is_held(SIGTERM); }).join();
    after_inner = is_held(SIGTERM);
  }).join();
  CHECK(own);
  CHECK(started);
  CHECK(after_inner);
  CHECK_FALSE(is_held(SIGTERM));
}

}  // namespace engram::held_signals_test
