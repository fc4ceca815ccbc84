#include "autograd/functions/add_bias.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::add_bias_test {
namespace {

const OpCases cases{
    OpCase{.name = "add_bias",
           .inputs = {{normal({3, 7}), normal({7})},
                      {normal({2, 3, 5}), normal({5})},
                      {normal({1}), normal({1})},
                      {normal({131, 67}), normal({67})}},
           .function = [](std::span<const Variable> x) { return add_bias(x[0], x[1]); },
           .reference = [](std::span<const Array64> x) { return reference::add_bias(x[0], x[1]); },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::vector},
           .errors = {{.inputs = {normal({3, 7}), normal({6})}, .contains = {"[7]", "[6]"}},
                      {.inputs = {normal({}), normal({1})}, .contains = {"add_bias", "[]"}},
                      {.inputs = {normal({2, 3}), index({3}, 3)}, .contains = {"bias", "i32"}}}},
    // Several rows of the same values as two queries of one product have them.
    OpCase{.name = "add_bias, two of one x",
           .inputs = {{normal({2, 4, 6}), normal({6}), normal({6})}},
           .function =
               [](std::span<const Variable> x) {
                 return std::vector<Variable>{add_bias(x[0], x[1]), add_bias(x[0], x[2])};
               },
           .reference =
               [](std::span<const Array64> x) {
                 return std::vector<Array64>{reference::add_bias(x[0], x[1]), reference::add_bias(x[0], x[2])};
               },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::vector, Role::vector}},
};

}  // namespace
}  // namespace engram::harness::add_bias_test
