#include "cuda/card/stream.hpp"

#include "core/error.hpp"
#include "cuda/card/check.hpp"

namespace engram::card {

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
Stream::~Stream() { (void)cudaStreamDestroy(stream_); }

TimedEvent::TimedEvent(cudaStream_t stream) {
  check(cudaEventCreateWithFlags(&event_, cudaEventDefault), "event");
  if (const cudaError_t code = cudaEventRecord(event_, stream); code != cudaSuccess) {
    (void)cudaEventDestroy(event_);
    check(code, "event");
  }
}
TimedEvent::~TimedEvent() { (void)cudaEventDestroy(event_); }

double TimedEvent::seconds_since(const Mark& earlier) const {
  const auto* const other = dynamic_cast<const TimedEvent*>(&earlier);
  if (other == nullptr) throw DeviceError("mark: both must be of one card");
  check(cudaEventSynchronize(other->event_), "event");
  check(cudaEventSynchronize(event_), "event");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, other->event_, event_), "event");
  return 1e-3 * static_cast<double>(milliseconds);
}

Event::Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
Event::~Event() { (void)cudaEventDestroy(event_); }

void Event::record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "event"); }
void Event::hold_back(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "event"); }

bool Event::has_passed() const {
  const cudaError_t code = cudaEventQuery(event_);
  if (code != cudaErrorNotReady) check(code, "event");
  if (code == cudaErrorNotReady) (void)cudaGetLastError();  // it is no mistake
  return code == cudaSuccess;
}

}  // namespace engram::card
