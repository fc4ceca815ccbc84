#pragma once
/// Names in the timelines of NVIDIA's profilers: a range for every kernel slot, called `scope/kernel`.

#include "core/step.hpp"

namespace engram::card {

class Ranges final : public KernelObserver {
 public:
  void before(const char* kernel) override;
  void after(const char* kernel) override;
};

/// Whether a profiler started this program.
bool profiler_listens();

}  // namespace engram::card
