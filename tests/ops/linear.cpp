#include "autograd/functions/linear.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::linear_test {
namespace {

const OpCases cases{
    OpCase{.name = "linear",
           .inputs = {{normal({3, 5}), normal({4, 5}), normal({4})},
                      {normal({2, 3, 7}), normal({1, 7}), normal({1})},
                      {normal({1}), normal({1, 1}), normal({1})},
                      {normal({6, 1}), normal({3, 1}), absent()},
                      {normal({35, 8}), normal({16, 8}), normal({16})},
                      {normal({131, 37}), normal({67, 37}), normal({67})}},
           .function = [](std::span<const Variable> x) { return linear(x[0], x[1], x[2]); },
           .reference = [](std::span<const Array64> x) { return reference::linear(x[0], x[1], x[2]); },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::matrix, Role::vector},
           .errors = {{.inputs = {normal({3, 5}), normal({4, 6}), absent()}, .contains = {"[3, 5]", "[4, 6]"}},
                      {.inputs = {normal({3, 5}), normal({5}), absent()}, .contains = {"[out, in]", "[5]"}},
                      {.inputs = {normal({}), normal({4, 5}), absent()}, .contains = {"[]", "[4, 5]"}},
                      {.inputs = {normal({3, 5}), normal({4, 5}), normal({5})}, .contains = {"bias", "[4]", "[5]"}},
                      {.inputs = {normal({3, 5}), index({4, 5}, 2), absent()}, .contains = {"weight", "i32"}}}},
    // Enough rows for several chunks of the bias gradient.
    OpCase{.name = "linear, many rows",
           .inputs = {{normal({7, 211, 3}), normal({2, 3}), normal({2})}},
           .function = [](std::span<const Variable> x) { return linear(x[0], x[1], x[2]); },
           .reference = [](std::span<const Array64> x) { return reference::linear(x[0], x[1], x[2]); },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::matrix, Role::vector}},
    // Logits are not rounded; their gradient is, as an operand of two more products.
    OpCase{.name = "linear, summed",
           .inputs = {{normal({3, 5}), normal({4, 5}), normal({4})}, {normal({131, 37}), normal({67, 37}), absent()}},
           .function = [](std::span<const Variable> x) { return linear(x[0], x[1], x[2], ProductResult::summed); },
           .reference = [](std::span<const Array64> x) { return reference::linear(x[0], x[1], x[2]); },
           .tolerance = {.bf16 = kRounding},
           .roles = {Role::activation, Role::matrix, Role::vector}},
};

}  // namespace
}  // namespace engram::harness::linear_test
