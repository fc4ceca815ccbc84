#pragma once
/// A device, the step of a test, and the parameters of a model in memory, readable and writable as plain arrays. The
/// model is a member of what derives from this: it goes before the store.

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/array64.hpp"

namespace engram::harness {

struct PlacedParameters {
  using Ids = std::vector<std::int64_t>;

  Backend& backend;
  HeapAllocator heap{backend};
  Step step{backend, heap, 5};
  ParameterStore store;
  /// False: losses of training without their gradients, for differences, which ask for thousands of them.
  bool differentiates = true;

  explicit PlacedParameters(Backend& device) : backend(device) {}

  const Tensor& tensor(const std::string& name) const {
    const Parameter* found = store.find(name);
    if (found == nullptr) throw Error("test: no parameter " + name);
    return found->value();
  }
  reference::Array64 value(const std::string& name) { return to_host(backend, tensor(name)); }
  reference::Array64 gradient(const std::string& name) { return to_host(backend, store.find(name)->gradient()); }
  void set(const std::string& name, const std::vector<double>& values) {
    const Tensor& to = tensor(name);
    reference::require(to.count() == static_cast<std::int64_t>(values.size()), "set: one value for every element");
    dispatch_float(to.dtype(), "test", [&]<class T>() {
      const std::vector<T> host(values.begin(), values.end());
      backend.copy(to.raw(), host.data(), to.bytes(), CopyKind::host_to_device);
    });
  }
  Tensor ids(const Ids& tokens, Shape shape) {
    Tensor tensor(shape, DType::i32, backend.device(), heap);
    const std::vector<std::int32_t> host(tokens.begin(), tokens.end());
    backend.copy(tensor.raw(), host.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
};

}  // namespace engram::harness
