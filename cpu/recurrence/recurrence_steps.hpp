#pragma once
/// What both passes of a recurrent layer share: sizes, and which states exist.

#include "core/kernels/recurrence.hpp"
#include "cpu/recurrence/recurrence_products.hpp"

namespace engram::cpu {

/// Streams B, steps M, units k, order N, matrices G; rows of states before the first step.
struct RecurrenceSizes {
  std::int64_t streams, steps, units, order, matrices, inputs, hidden_rows, cell_rows;

  RecurrenceSizes(const RecurrenceInputs& in, const Tensor& outputs)
      : streams(outputs.shape()[0]),
        steps(outputs.shape()[1]),
        units(outputs.shape()[2]),
        order(in.options.history()),
        matrices(in.options.weight_blocks()),
        inputs(in.options.input_blocks()),
        hidden_rows(in.hidden.shape()[1]),
        cell_rows(in.cells.shape()[1]) {}
  /// Where products of one state with all matrices are kept, those of s = -order, ..., steps - 2.
  std::int64_t product_rows() const { return order + steps - 1; }
};

/// Whether states before a step exist.
class EarlierStates {
 public:
  EarlierStates(const RecurrenceInputs& in, const RecurrenceSizes& sizes)
      : preceding_(in.preceding.data<const std::int32_t>()),
        steps_(sizes.steps),
        hidden_rows_(sizes.hidden_rows),
        cell_rows_(sizes.cell_rows) {}
  bool in_sequence(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return preceding_[stream * steps_ + t] >= delay;
  }
  bool hidden(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return in_sequence(stream, t, delay) && t - delay >= -hidden_rows_;
  }
  bool cell(std::int64_t stream, std::int64_t t) const {
    return in_sequence(stream, t, 1) && (t > 0 || cell_rows_ > 0);
  }

 private:
  const std::int32_t* preceding_;
  std::int64_t steps_, hidden_rows_, cell_rows_;
};

/// Calls body(unit, count) for whole vectors of units [first, end) and the shorter rest.
template <class T, class Body>
void for_lanes(std::int64_t first, std::int64_t end, Body&& body) {
  constexpr std::int64_t kLanes = sizeof(typename CellLanes<T>::Vector) / sizeof(T);
  for (std::int64_t unit = first; unit < end; unit += kLanes) body(unit, std::min(kLanes, end - unit));
}

}  // namespace engram::cpu
