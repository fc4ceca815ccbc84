#include "autograd/functions/softmax.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness {
namespace {

const OpCases cases{
    OpCase{.name = "softmax",
           .inputs = {{normal({3, 7})}, {normal({5, 1})}, {normal({5, 16})}, {normal({2, 3, 1031})}, {normal({4})}},
           .function = [](std::span<const Variable> x) { return softmax(x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::softmax(x[0]); },
           .tolerance = {.bf16 = 3 * kRounding},
           .errors = {{.inputs = {normal({})}, .contains = {"at least one axis", "[]"}},
                      {.inputs = {normal({3, 0})}, .contains = {"[3, 0]"}}}},
};

}  // namespace
}  // namespace engram::harness
