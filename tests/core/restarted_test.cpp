#include "core/files/restarted.hpp"

#include "tests/harness/catch.hpp"

namespace engram::harness::restarted_test {

TEST_CASE("restarted: a call that a signal breaks off is made again, and no other", "[durable_file]") {
  int calls = 0;
  const auto fails_twice_with = [&calls](int error) {
    return restarted([&calls, error] {
      if (++calls > 2) return 7L;
      errno = error;
      return -1L;
    });
  };
  CHECK(fails_twice_with(EINTR) == 7);
  CHECK(calls == 3);
  calls = 0;
  CHECK(fails_twice_with(EIO) == -1);
  CHECK(errno == EIO);
  CHECK(calls == 1);
}

}  // namespace engram::harness::restarted_test
