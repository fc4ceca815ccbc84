#include "autograd/functions/concat.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::concat_test {
namespace {

Reference joined(int axis) {
  return [axis](std::span<const Array64> x) { return reference::concat({x.begin(), x.end()}, axis); };
}
Function concat_along(int axis) {
  return [axis](std::span<const Variable> x) { return concat(x, axis); };
}

const OpCases cases{
    OpCase{.name = "concat, axis 0",
           .inputs = {{normal({3, 5}), normal({1, 5}), normal({7, 5})},
                      {normal({4})},
                      {normal({1, 3}), normal({0, 3})},
                      {normal({1, 16411}), normal({2, 16411})}},
           .function = concat_along(0),
           .reference = joined(0),
           .tolerance = {.bf16 = kMoved},
           .errors = {{.inputs = {normal({2, 3}), normal({2, 4})}, .contains = {"[2, 3]", "[2, 4]", "axis 0"}},
                      {.inputs = {normal({2, 3}), normal({2})}, .contains = {"[2, 3]", "[2]"}},
                      {.inputs = {normal({2, 3}), index({2, 3}, 2)}, .contains = {"i32"}},
                      {.inputs = {}, .contains = {"at least one part"}},
                      {.inputs = {normal({})}, .contains = {"axis", "[]"}},
                      {.inputs = {normal({2, 3})}, .contains = {"axis", "[2, 3]", "2"}, .function = concat_along(2)}}},
    OpCase{.name = "concat, middle axis",
           .inputs = {{normal({3, 1, 5}), normal({3, 4, 5})}, {normal({2, 127, 131}), normal({2, 3, 131})}},
           .function = concat_along(1),
           .reference = joined(1),
           .tolerance = {.bf16 = kMoved}},
    OpCase{.name = "concat, last axis",
           .inputs = {{normal({3, 5}), normal({3, 1})}, {normal({1, 2, 3, 2, 1}), normal({1, 2, 3, 2, 3})}},
           .function = concat_along(-1),
           .reference =
               [](std::span<const Array64> x) {
                 return reference::concat({x.begin(), x.end()}, x[0].rank() - 1);
               },
           .tolerance = {.bf16 = kMoved}},
};

}  // namespace
}  // namespace engram::harness::concat_test
