#pragma once
/// All examples: one at least for every file of autograd/functions, which a test asks for. They stand beside the op
/// table of the tests, whose sizes are chosen to break kernels, not to be read.

#include <string_view>
#include <vector>

#include "apps/tour/trace/op_example.hpp"

namespace engram::tour {

/// Sorted by name.
const std::vector<OpExample>& op_examples();
/// Throws UsageError for another name, with the nearest one.
const OpExample& op_example(std::string_view name);

// What the list is made of, a file each.
std::vector<OpExample> elementwise_examples();
std::vector<OpExample> product_examples();
std::vector<OpExample> row_examples();
std::vector<OpExample> loss_examples();
std::vector<OpExample> shape_examples();
std::vector<OpExample> attention_examples();
std::vector<OpExample> window_examples();
std::vector<OpExample> lookup_examples();
std::vector<OpExample> recurrence_examples();
/// Alone in its file: docs/guide/debugging.md stops in it, and a test builds what it needs with all that a debugger
/// wants to know.
OpExample softmax_example();

}  // namespace engram::tour
