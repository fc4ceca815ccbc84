#pragma once

#include "core/tensor.hpp"
#include "core/write.hpp"

namespace engram {

/// Where a kernel's result goes, and whether it replaces what is there. False when the result is not wanted.
struct Target {
  Tensor tensor;
  Write write = Write::set;

  explicit operator bool() const { return static_cast<bool>(tensor); }
  /// The first element; nullptr when the result is not wanted. Throws DTypeError when T is not the element type.
  template <class T>
  T* data() const {
    return tensor ? tensor.data<T>() : nullptr;
  }
};

/// A target as loops and kernels of cards take it: its elements, or nullptr when the result is not wanted.
template <class T>
struct TargetElements {
  T* data;
  Write write;

  TargetElements(const Target& target) : data(target.data<T>()), write(target.write) {}
  /// Memory that nobody has written to yet.
  TargetElements(T* elements) : data(elements), write(Write::set) {}
};

/// For observers of kernels.
template <class List>
void collect_tensors(List& list, const Target& target) {
  list.push_back({&target.tensor, true});
}

}  // namespace engram
