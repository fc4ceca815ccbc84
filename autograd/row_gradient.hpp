#pragma once
/// The gradient of a table's rows, as a step builds it.

#include <vector>

#include "core/row_uses.hpp"

namespace engram {

struct RowGradient {
  /// What one lookup adds. The order of its uses is there when the lookup's backward pass needed it.
  struct Part {
    RowUses uses;
    RowOrder order;
  };
  /// One for every lookup of the step: of pieces of a batch, and of several layers that share the table. All have equal
  /// numbers of uses per result. Memory of the step: cleared before it ends.
  std::vector<Part> parts;
};

}  // namespace engram
