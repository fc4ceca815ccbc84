#include "cuda/card/stream.hpp"

#include "cuda/card/check.hpp"

namespace engram::card {

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
Stream::~Stream() { (void)cudaStreamDestroy(stream_); }

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
