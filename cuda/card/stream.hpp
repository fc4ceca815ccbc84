#pragma once
/// Streams and events of the CUDA runtime, which end with their owners.

#include <cuda_runtime_api.h>

#include "core/backend.hpp"

namespace engram::card {

/// A stream that waits for no other.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A place in a stream that knows when it passed, by the card's clock.
class TimedEvent final : public Mark {
 public:
  explicit TimedEvent(cudaStream_t stream);
  ~TimedEvent() override;
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  double seconds_since(const Mark& earlier) const override;

 private:
  cudaEvent_t event_ = nullptr;
};

/// A place in a stream that another one can wait for.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// It becomes the place behind all that was handed to the stream so far.
  void record(cudaStream_t stream);
  /// What is handed to the stream from here on begins after the place that was recorded last.
  void hold_back(cudaStream_t stream) const;
  /// Whether everything before that place is done.
  bool has_passed() const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace engram::card
