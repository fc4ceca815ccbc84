#include "autograd/functions/multiply.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::multiply_test {
namespace {

const OpCases cases{
    OpCase{.name = "multiply",
           .inputs = {{normal({3, 7}), normal({3, 7})},
                      {normal({1}), normal({1})},
                      {normal({}), normal({})},
                      {normal({16411}), normal({16411})}},
           .function = [](std::span<const Variable> x) { return multiply(x[0], x[1]); },
           .reference = [](std::span<const Array64> x) { return reference::multiply(x[0], x[1]); },
           .tolerance = {.bf16 = kRounding},
           .errors = {{.inputs = {normal({3, 7}), normal({7})}, .contains = {"[3, 7]", "[7]"}},
                      {.inputs = {normal({3, 7}), normal({7, 1})}, .contains = {"[3, 7]", "[7, 1]"}},
                      {.inputs = {normal({3}), absent()}, .contains = {"no tensor"}},
                      {.inputs = {normal({2}), index({2}, 3)}, .contains = {"i32"}}}},
    OpCase{.name = "multiply, a number for each row",
           .inputs = {{normal({3, 7}), normal({3, 1})},
                      {normal({5, 1031}), normal({5, 1})},
                      {normal({2, 3, 16}), normal({2, 3, 1})}},
           .function = [](std::span<const Variable> x) { return multiply(x[0], x[1]); },
           .reference = [](std::span<const Array64> x) { return reference::multiply(x[0], x[1]); },
           .tolerance = {.f32 = 1e-5, .bf16 = 2 * kRounding}},
    // Both inputs are one value, whose gradient is set once and added once.
    OpCase{.name = "multiply by itself",
           .inputs = {{normal({5, 3})}},
           .function = [](std::span<const Variable> x) { return multiply(x[0], x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::multiply(x[0], x[0]); },
           .tolerance = {.bf16 = 2 * kRounding}},
};

}  // namespace
}  // namespace engram::harness::multiply_test
