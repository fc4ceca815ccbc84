#pragma once
/// A CPU step whose memory is guarded and counted, and tensors with known values on it.

#include <memory>
#include <vector>

#include "autograd/tape.hpp"
#include "core/step.hpp"
#include "tests/harness/guarded_allocator.hpp"

namespace engram::harness {

struct StepFixture {
  std::unique_ptr<Backend> backend = open_backend({});
  GuardedAllocator memory{*backend};
  Step step{*backend, memory, 1};

  Tensor tensor(Shape shape, const std::vector<double>& values) {
    Tensor x = step.empty(shape, DType::f64);
    backend->copy(x.data<double>(), values.data(), x.bytes(), CopyKind::host_to_device);
    return x;
  }
  static std::vector<double> values(const Tensor& x) { return {x.data<double>(), x.data<double>() + x.count()}; }
};

}  // namespace engram::harness
