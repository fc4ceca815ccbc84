#include "cuda/card/waiting.hpp"

#include <chrono>
#include <mutex>
#include <thread>

#include "core/communicator.hpp"
#include "cuda/card/stream.hpp"
#include "tests/card/stream_work.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::waiting_test {
namespace {

TEST_CASE("waiting: for a stream and for an event, watched or not") {
  for (const bool watched : {false, true}) {
    CAPTURE(watched);
    card::Stream stream;
    card::Waiting waiting;
    if (watched) waiting.watch([](double) {});
    CHECK(waiting.is_watched() == watched);
    cudaEvent_t event = nullptr;
    card::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    int done = 0;
    hand_over(stream, [&done] { done = 1; });
    card::check(cudaEventRecord(event, stream), "event");
    waiting.wait_for(event);
    CHECK(done == 1);
    hand_over(stream, [&done] { done = 2; });
    waiting.wait_for(stream);
    CHECK(done == 2);
    card::check(cudaEventDestroy(event), "event");
  }
}

TEST_CASE("marks: the time of a stream's work between them, without waiting") {
  card::Stream stream;
  bool done = false;
  const card::TimedEvent begin(stream);
  hand_over(stream, [&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  const card::TimedEvent end(stream);
  hand_over(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  const double seconds = end.seconds_since(begin);
  CHECK(done);
  CHECK(seconds >= 0.02);
  wait_for(stream);
}

TEST_CASE("waiting: who looks can end it") {
  card::Stream stream, other;
  card::Event never_yet;
  card::Waiting waiting;
  // The other stream's work goes on when this one is given up.
  std::mutex mutex;
  mutex.lock();
  hand_over(other, [&mutex] { const std::lock_guard lock(mutex); });
  never_yet.record(other);
  never_yet.hold_back(stream);
  waiting.watch([](double seconds) {
    if (seconds > 0.05) throw RankError("enough");
  });
  CHECK_THROWS_AS(waiting.wait_for(stream), RankError);
  mutex.unlock();
  wait_for(stream);
}

}  // namespace
}  // namespace engram::harness::waiting_test
