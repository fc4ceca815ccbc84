#pragma once
/// The beginning of a kernel that adds to its result in several places.

#include "core/target.hpp"
#include "cpu/fill_elements.hpp"

namespace engram::cpu {

/// Zeros where the target says set. A target that is not wanted is left alone.
template <class T>
void zero_if_set(const Target& target) {
  if (!target || target.write == Write::add) return;
  fill_elements(target.data<T>(), target.tensor.count(), T(0));
}

}  // namespace engram::cpu
