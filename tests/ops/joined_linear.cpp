#include "autograd/functions/joined_linear.hpp"

#include <array>

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::joined_linear_test {
namespace {

/// x, two weights, two biases.
Variable joined(std::span<const Variable> x) { return joined_linear(x[0], x.subspan(1, 2), x.subspan(3, 2)); }
Array64 side_by_side(std::span<const Array64> x) {
  return reference::concat({reference::linear(x[0], x[1], x[3]), reference::linear(x[0], x[2], x[4])}, x[0].rank() - 1);
}

const OpCases cases{
    OpCase{
        .name = "joined_linear",
        .inputs = {{normal({3, 5}), normal({4, 5}), normal({2, 5}), normal({4}), normal({2})},
                   {normal({2, 3, 7}), normal({1, 7}), normal({3, 7}), normal({1}), normal({3})},
                   {normal({1}), normal({1, 1}), normal({1, 1}), normal({1}), normal({1})},
                   {normal({35, 8}), normal({16, 8}), normal({3, 8}), normal({16}), normal({3})},
                   {normal({131, 37}), normal({67, 37}), normal({3, 37}), normal({67}), normal({3})}},
        .function = joined,
        .reference = side_by_side,
        .tolerance = {.bf16 = kRounding},
        .roles = {Role::activation, Role::matrix, Role::matrix, Role::vector, Role::vector},
        .errors = {{.inputs = {normal({3, 5}), normal({4, 5}), normal({2, 6}), normal({4}), normal({2})},
                    .contains = {"joined_linear", "[3, 5]", "[2, 6]"}},
                   {.inputs = {normal({3, 5}), normal({4, 5}), normal({2}), normal({4}), normal({2})},
                    .contains = {"[n, in]", "[2]"}},
                   {.inputs = {normal({3, 5}), normal({4, 5}), normal({2, 5}), normal({4}), normal({3})},
                    .contains = {"bias", "[2]", "[3]"}},
                   {.inputs = {normal({3, 5}), normal({4, 5}), index({2, 5}, 2), normal({4}), normal({2})},
                    .contains = {"weight", "i32"}},
                   {.inputs = {normal({3, 5}), normal({4, 5})},
                    .contains = {"a bias for each", "got 1 and 0"},
                    .function = [](std::span<const Variable> x) { return joined_linear(x[0], x.subspan(1, 1), {}); }}}},
    // One weight: as linear.
    OpCase{
        .name = "joined_linear, one weight",
        .inputs = {{normal({9, 5}), normal({4, 5}), normal({4})}},
        .function = [](std::span<const Variable> x) { return joined_linear(x[0], x.subspan(1, 1), x.subspan(2, 1)); },
        .reference = [](std::span<const Array64> x) { return reference::linear(x[0], x[1], x[2]); },
        .tolerance = {.bf16 = kRounding},
        .roles = {Role::activation, Role::matrix, Role::vector}},
};

}  // namespace
}  // namespace engram::harness::joined_linear_test
