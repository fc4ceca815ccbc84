/// Two processes must not train in one folder.

#include "apps/run/folder/run_lock.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::run_lock_test {
namespace {

TEST_CASE("a folder that is being trained in is refused, and free again afterwards, also after a kill") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  std::filesystem::create_directories(options.out);
  {
    const RunLock lock(options.out);
    CHECK_THROWS_WITH(run_training(options, never()), ContainsSubstring("one process at a time"));
  }
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t other = fork();
  if (other == 0) {
    const RunLock lock(options.out);
    const char byte = 1;
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_AS(RunLock(options.out), UsageError);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  CHECK(run_training(options, never()).step == 24);
}

}  // namespace
}  // namespace engram::harness::run_lock_test
