#include "cuda/card/waiting.hpp"

#include <chrono>
#include <thread>

#include "core/stopwatch.hpp"
#include "cuda/card/check.hpp"

namespace engram::card {

void Waiting::wait_for(cudaStream_t stream) const {
  constexpr const char* kWhat = "waiting for the card";
  if (!look_) {
    check(cudaStreamSynchronize(stream), kWhat);
    return;
  }
  constexpr double kSpin = 0.002, kLookEvery = 0.01;
  const Stopwatch clock;
  double looked = 0;
  for (;;) {
    const cudaError_t code = cudaStreamQuery(stream);
    if (code == cudaSuccess) return;
    if (code != cudaErrorNotReady) check(code, kWhat);
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
