#include "autograd/functions/sum.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::sum_test {
namespace {

const OpCases cases{
    // The longest is three chunks; positive numbers, so that the tolerance is one of the sum and not of its rest.
    OpCase{.name = "sum",
           .inputs = {{normal({3, 7})}, {normal({1})}, {normal({})}, {positive({32771})}},
           .function = [](std::span<const Variable> x) { return sum(x[0], 0.125); },
           .reference = [](std::span<const Array64> x) { return 0.125 * reference::sum(x[0]); },
           .tolerance = {.bf16 = kRounding}},
    OpCase{.name = "sum, factor 1",
           .inputs = {{normal({4, 5})}},
           .function = [](std::span<const Variable> x) { return sum(x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::sum(x[0]); },
           .tolerance = {.bf16 = kRounding}},
};

}  // namespace
}  // namespace engram::harness::sum_test
