#pragma once
/// Exercise 5: docs/exercises/05_set_and_add.md.

#include <span>
#include <vector>

#include "core/write.hpp"

namespace engram::exercises {

/// Where a gradient goes: memory, and whether it is replaced (Write::set) or added to (Write::add). With Write::set the
/// memory holds anything, nan too. Empty memory: nobody wants this gradient.
struct GradientPlace {
  std::span<double> numbers;
  Write write = Write::set;
};

/// The forward pass was y[i] = a[i] b[i]; dy is the gradient of y. Gives a and b their gradients. Where a and b are one
/// variable, both places are the same memory, and the word of db is Write::add.
void multiply_backward(std::span<const double> a, std::span<const double> b, std::span<const double> dy,
                       const GradientPlace& da, const GradientPlace& db);

/// For the tape: the word for the next contribution to a variable's gradient. `begun` has an element for each variable,
/// false at the start of a backward pass; it is the tape's memory of what was asked before.
Write word_for(std::vector<bool>& begun, int variable);

}  // namespace engram::exercises
