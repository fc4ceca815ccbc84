#pragma once
/// The gradient of a table's rows, as a step builds it.

#include <cstdint>
#include <vector>

#include "core/rules/row_uses.hpp"
#include "core/step.hpp"

namespace engram {

struct RowGradient {
  /// What one lookup adds. The order of its uses is there when the lookup's backward pass needed it.
  struct Part {
    RowUses uses;
    RowOrder order;
    int ranks = 1;  ///< so many read together: their results are equal parts, those of rank 0 first
  };
  /// One for every lookup of the step: of pieces of a batch, and of several layers that share the table. All have equal
  /// numbers of uses per result, and of ranks. Memory of the step: cleared before it ends.
  std::vector<Part> parts;
};

/// The order of uses of a table of `table_rows` rows; ids: [R, A] i64 in [0, table_rows). Throws Error for more than
/// kMostRowUses.
RowOrder ordered(Step& step, const Tensor& ids, std::int64_t table_rows);

/// All parts as one, with its order: a single part as it is, several one after the other and ordered anew. Where ranks
/// read together, all that one of them read comes before what the next one did: they have the pieces of a batch in
/// their order. Empty when there are none. Throws Error when the parts differ in the number of uses per result or of
/// ranks, in width or in dtype, or have more than kMostRowUses uses together.
RowGradient::Part joined(Step& step, const RowGradient& gradient, std::int64_t table_rows);

}  // namespace engram
