#include "autograd/functions/scale.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::scale_test {
namespace {

const OpCases cases{
    OpCase{.name = "scale",
           .inputs = {{normal({3, 7})}, {normal({1})}, {normal({16411})}},
           .function = [](std::span<const Variable> x) { return scale(x[0], -2.5); },
           .reference = [](std::span<const Array64> x) { return reference::scale(x[0], -2.5); },
           .tolerance = {.bf16 = kRounding}},
};

}  // namespace
}  // namespace engram::harness::scale_test
