#include "autograd/functions/slice.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::slice_test {
namespace {

OpCase cut(const char* name, int axis, std::int64_t begin, std::int64_t end, std::vector<std::vector<Input>> inputs) {
  return {.name = name,
          .inputs = std::move(inputs),
          .function = [=](std::span<const Variable> x) { return slice(x[0], axis, begin, end); },
          .reference =
              [=](std::span<const Array64> x) {
                return reference::slice(x[0], axis < 0 ? axis + x[0].rank() : axis, begin, end);
              },
          .tolerance = {.bf16 = kMoved}};
}

OpCase cut_with_errors() {
  OpCase op = cut("slice, last axis", -1, 1, 3, {{normal({4, 5})}, {normal({3})}, {normal({2, 3, 4})}});
  const auto with = [](int axis, std::int64_t begin, std::int64_t end) {
    return Function([=](std::span<const Variable> x) { return slice(x[0], axis, begin, end); });
  };
  op.errors = {
      {.inputs = {normal({4, 2})}, .contains = {"[4, 2]", "1 and 3"}},
      {.inputs = {normal({4, 5})}, .contains = {"-1 and 3"}, .function = with(0, -1, 3)},
      {.inputs = {normal({4, 5})}, .contains = {"3 and 2"}, .function = with(0, 3, 2)},
      {.inputs = {normal({4, 5})}, .contains = {"axis", "[4, 5]", "-3"}, .function = with(-3, 0, 1)},
  };
  return op;
}

const OpCases cases{
    cut("slice, axis 0", 0, 2, 5, {{normal({7, 3})}, {normal({5})}, {normal({5, 16411})}}),
    cut("slice, everything", 1, 0, 3, {{normal({2, 3, 5})}}),
    cut("slice, middle axis", 1, 1, 130, {{normal({3, 131, 7})}, {normal({2, 130, 131})}}),
    cut_with_errors(),
};

}  // namespace
}  // namespace engram::harness::slice_test
