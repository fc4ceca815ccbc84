#include "autograd/functions/add.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::add_test {
namespace {

const OpCases cases{
    OpCase{.name = "add",
           .inputs = {{normal({3, 7}), normal({3, 7})},
                      {normal({1}), normal({1})},
                      {normal({}), normal({})},
                      {normal({16411}), normal({16411})}},
           .function = [](std::span<const Variable> x) { return add(x[0], x[1]); },
           .reference = [](std::span<const Array64> x) { return reference::add(x[0], x[1]); },
           .tolerance = {.bf16 = kRounding},
           .errors = {{.inputs = {normal({3, 7}), normal({7})}, .contains = {"[3, 7]", "[7]"}},
                      {.inputs = {normal({3}), absent()}, .contains = {"[3]", "no tensor"}},
                      {.inputs = {normal({2}), index({2}, 3)}, .contains = {"i32"}}}},
    // Both inputs are one value: its gradient is handed over once and added once.
    OpCase{.name = "add to itself",
           .inputs = {{normal({5, 3})}},
           .function = [](std::span<const Variable> x) { return add(x[0], x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::add(x[0], x[0]); },
           .tolerance = {.bf16 = kMoved}},
};

}  // namespace
}  // namespace engram::harness::add_test
