#pragma once
/// Exercise 10: docs/exercises/10_slots.md.

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// What attention of one head reads: q, k, v [positions, width], as in exercise 8, and persistent slots, which belong
/// to no position and which every query sees: slot_keys and slot_values [slots, width].
struct SlotInputs {
  Matrix q, k, v, slot_keys, slot_values;
};

/// y [positions, width]. Row t is the sum of a(t, j) v(j) over j <= t and of b(t, n) slot_values(n) over all slots n.
/// All weights of a row come from one softmax: over the scores q(t) . k(j) / sqrt(width) with j <= t and the scores
/// q(t) . slot_keys(n) / sqrt(width).
Matrix attention_with_slots(const SlotInputs& inputs);

/// Writes the gradients of slot_keys and slot_values, dy being that of y.
void slots_backward(const SlotInputs& inputs, const Matrix& dy, Matrix& dslot_keys, Matrix& dslot_values);

}  // namespace engram::exercises
