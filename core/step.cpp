#include "core/step.hpp"

namespace engram {

Step::Step(Backend& backend, Allocator& memory, std::uint64_t seed)
    : backend_(&backend),
      memory_(&memory),
      seed_(seed),
      scalars_(static_cast<StepScalars*>(backend.reserve(sizeof(StepScalars)))) {
  begin({});
}

Step::~Step() { backend_->release(scalars_); }

void Step::begin(const StepScalars& scalars) {
  next_operation_ = 0;
  backend_->copy(scalars_, &scalars, sizeof scalars, CopyKind::host_to_device);
}

}  // namespace engram
