#include "autograd/functions/reshape.hpp"

#include "autograd/functions/scale.hpp"
#include "tests/harness/op_table.hpp"

namespace engram::harness::reshape_test {
namespace {

const OpCases cases{
    OpCase{.name = "reshape",
           .inputs = {{normal({3, 4})}, {normal({12})}, {normal({2, 1, 6})}},
           .function =
               [](std::span<const Variable> x) {
                 return reshape(x[0], {2, 6});
               },
           .reference =
               [](std::span<const Array64> x) {
                 return Array64{{2, 6}, x[0].data};
               },
           .tolerance = {.bf16 = kMoved},
           .errors = {{.inputs = {normal({3, 5})}, .contains = {"[3, 5]", "[2, 6]"}}}},
    // The gradient is handed back through a shape that is not the input's.
    OpCase{.name = "reshape, between two products",
           .inputs = {{normal({3, 4})}},
           .function =
               [](std::span<const Variable> x) {
                 return scale(reshape(scale(x[0], 3), {4, 3}), 2);
               },
           .reference =
               [](std::span<const Array64> x) {
                 Array64 y{{4, 3}, x[0].data};
                 for (double& value : y.data) value *= 6;
                 return y;
               },
           .tolerance = {.bf16 = 2 * kRounding}},
};

}  // namespace
}  // namespace engram::harness::reshape_test
