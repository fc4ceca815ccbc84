#include "cuda/card/waiting.hpp"

#include <chrono>
#include <thread>

#include "core/stopwatch.hpp"
#include "cuda/card/check.hpp"

namespace engram::card {
namespace {

constexpr const char* kWaiting = "waiting for the card";

}  // namespace

void Waiting::wait_for(cudaStream_t stream) const {
  if (look_)
    ask([stream] { return cudaStreamQuery(stream); });
  else
    check(cudaStreamSynchronize(stream), kWaiting);
}

void Waiting::wait_for(cudaEvent_t event) const {
  if (look_)
    ask([event] { return cudaEventQuery(event); });
  else
    check(cudaEventSynchronize(event), kWaiting);
}

void Waiting::ask(const std::function<cudaError_t()>& query) const {
  constexpr double kSpin = 0.002, kLookEvery = 0.01;
  const Stopwatch clock;
  double looked = 0;
  for (;;) {
    const cudaError_t code = query();
    if (code == cudaSuccess) return;
    if (code != cudaErrorNotReady) check(code, kWaiting);
    (void)cudaGetLastError();  // that it is not ready is no mistake
    const double now = clock.seconds();
    if (now - looked > kLookEvery) {
      look_(now);
      looked = now;
    }
    if (now < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace engram::card
