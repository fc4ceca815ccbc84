#include "core/step.hpp"

#include "core/error.hpp"

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

void Step::set_activations(ActivationPrecision precision) {
  if (precision == ActivationPrecision::bf16 && !backend_->stores_bf16())
    throw NotAvailable(text("step: bf16 activations need a device whose kernels take them, got ", device(),
                            "\n  products alone can be rounded to bf16 on every device"));
  activations_ = precision;
}

}  // namespace engram
