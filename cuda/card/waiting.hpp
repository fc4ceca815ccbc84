#pragma once
/// The one place where the host waits for a card.

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

namespace engram::card {

class Waiting {
 public:
  /// Called now and then while the host waits, with the seconds it has waited; it may throw, for what the card would
  /// wait for in vain. Empty: nobody looks.
  using Look = std::function<void(double seconds)>;
  void watch(Look look) { look_ = std::move(look); }
  bool is_watched() const { return static_cast<bool>(look_); }

  /// Returns when everything that was handed to the stream is done, or when the event has passed. Throws DeviceError,
  /// and what the look throws.
  void wait_for(cudaStream_t stream) const;
  void wait_for(cudaEvent_t event) const;

 private:
  void ask(const std::function<cudaError_t()>& query) const;

  Look look_;
};

}  // namespace engram::card
