#pragma once
/// Looks at everything that every kernel writes and stops the run at the first number that is not finite, with the
/// place, the kernel and the shapes. Negative infinity is let pass: it is the logarithm of an empty sum.

#include <string>

#include "core/step.hpp"

namespace engram {

class NanTrace final : public KernelObserver {
 public:
  explicit NanTrace(Backend& backend) : backend_(&backend) {}
  void before(const char*) override {}
  void after(const char*) override {}
  /// Throws Error naming the first offender.
  void tensors(const char* kernel, std::span<const TensorArgument> arguments) override;

 private:
  Backend* backend_;
};

}  // namespace engram
