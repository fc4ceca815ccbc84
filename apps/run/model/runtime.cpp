#include "apps/run/model/runtime.hpp"

#include <utility>

#include "core/device_ranks.hpp"
#include "core/error.hpp"

namespace engram {

Runtime::Runtime(Device device, int threads, std::uint64_t seed, Communicator* ranks)
    : Runtime(open_backend(device), threads, seed, ranks) {}

Runtime::Runtime(std::unique_ptr<Backend> backend, int threads, std::uint64_t seed, Communicator* ranks)
    : backend_(std::move(backend)),
      heap_(*backend_),
      arena_(heap_),
      step_(*backend_, arena_, seed),
      ranks_(ranks != nullptr ? ranks : &one_) {
  if (threads < 0 || threads > 4096) throw UsageError(text("--threads must be from 1 to 4096, got ", threads));
  if (threads > 0) backend_->set_threads(threads);
  step_.observe(backend_->profiler());
  device_ranks_ = open_device_ranks(*ranks_, *backend_);
  if (device_ranks_ != nullptr) ranks_ = device_ranks_.get();
}

}  // namespace engram
