#pragma once
/// The tensors that a file of another program must have.

#include <functional>
#include <span>
#include <string>

#include "apps/run/weights/foreign_weights.hpp"
#include "core/shape.hpp"

namespace engram {

struct ForeignLayoutTensor {
  std::string name;  ///< as in the file
  Shape shape;
  /// Where the tensor is tied: the one of the layout, before it, that it repeats; it may be absent then. Empty: none.
  std::string copy_of = {};
};

/// Throws one FileError that lists every tensor that is missing, of another shape, of integers, a tied copy that
/// differs from its source, or neither in the layout nor `ignored`.
void require_layout(const ForeignWeights& weights, std::span<const ForeignLayoutTensor> layout,
                    const std::function<bool(const std::string& name)>& ignored);

}  // namespace engram
