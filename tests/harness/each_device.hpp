#pragma once
/// For test cases of single kernels that are to run on every device.

#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness {

/// The device of this run of the test case, which Catch repeats for every device of the program. Once per test case,
/// for instance in its fixture.
inline Backend& each_device() {
  const int devices = static_cast<int>(available_backends().size());
  return *available_backends()[static_cast<std::size_t>(GENERATE_COPY(range(0, devices)))];
}

/// The device of this kind, where the program and this machine have it; else nullptr.
inline Backend* device_of(DeviceKind kind) {
  for (const auto& backend : available_backends())
    if (backend->device().kind == kind) return backend.get();
  return nullptr;
}

}  // namespace engram::harness
