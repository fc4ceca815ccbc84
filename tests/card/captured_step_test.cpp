#include "cuda/card/captured_step.hpp"

#include <string>

#include "cuda/card/stream.hpp"
#include "tests/card/stream_work.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::captured_step_test {
namespace {

TEST_CASE("captured step: nothing is done while it is recorded, and its actions have their places in every replay") {
  card::Stream stream;
  std::string done;
  const auto work = [&](char name) { hand_over(stream, [&done, name] { done += name; }); };
  // An action waits for the stream, as one that reads from the device.
  const auto action = [&](char name) {
    return [&done, &stream, name] {
      wait_for(stream);
      done += name;
    };
  };
  card::Capture capture(stream);
  capture.between(action('1'));
  work('a');
  work('b');
  capture.between(action('2'));
  capture.between(action('3'));
  work('c');
  const auto step = capture.finish();
  wait_for(stream);
  CHECK(done.empty());
  for (int replay = 0; replay < 3; ++replay) {
    done.clear();
    step->run();
    wait_for(stream);
    CHECK(done == "1ab23c");
  }
}

TEST_CASE("captured step: of one that the card has no memory for nothing is done") {
  card::Stream stream;
  std::string done;
  const auto work = [&](char name) { hand_over(stream, [&done, name] { done += name; }); };
  const auto captured = [&](int nodes) {
    card::Capture capture(stream);
    work('a');
    capture.between([&done] { done += '1'; });
    for (int i = 0; i < nodes; ++i) work('b');
    capture.between([&done] { done += '2'; });
    work('c');
    return capture.finish();
  };
  CHECK(captured(1000) == nullptr);
  wait_for(stream);
  CHECK(done.empty());
  const auto step = captured(3);
  REQUIRE(step != nullptr);
  CHECK(step->nodes() == 5);
}

TEST_CASE("captured step: a step that throws leaves a stream that works") {
  card::Stream stream;
  bool done = false;
  {
    card::Capture capture(stream);
    hand_over(stream, [&done] { done = true; });
    capture.between([] {});
    hand_over(stream, [&done] { done = true; });
  }
  wait_for(stream);
  CHECK_FALSE(done);
  hand_over(stream, [&done] { done = true; });
  wait_for(stream);
  CHECK(done);
}

}  // namespace
}  // namespace engram::harness::captured_step_test
