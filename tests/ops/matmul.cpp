#include "autograd/functions/matmul.hpp"

#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::matmul_test {
namespace {

using kernels::Transpose;

OpCase product(const char* name, Transpose ta, Transpose tb) {
  const bool a = ta == Transpose::yes, b = tb == Transpose::yes;
  const auto sizes = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    return std::vector<Input>{normal(a ? Shape{k, m} : Shape{m, k}), normal(b ? Shape{n, k} : Shape{k, n})};
  };
  const auto batched = [&](std::int64_t count, std::int64_t m, std::int64_t k, std::int64_t n) {
    return std::vector<Input>{normal(a ? Shape{count, k, m} : Shape{count, m, k}),
                              normal(b ? Shape{count, n, k} : Shape{count, k, n})};
  };
  return {.name = name,
          .inputs = {sizes(3, 5, 4), sizes(1, 1, 1), sizes(1, 7, 2), sizes(67, 131, 37), batched(3, 2, 5, 7),
                     batched(1, 4, 1, 3)},
          .function = [=](std::span<const Variable> x) { return matmul(x[0], x[1], ta, tb); },
          .reference = [=](std::span<const Array64> x) { return reference::matmul(x[0], x[1], a, b); },
          .tolerance = {.bf16 = kRounding},
          .errors = {{.inputs = {normal({3, 5}), normal({7, 11})}, .contains = {"[3, 5]", "[7, 11]"}},
                     {.inputs = {normal({2, 3, 3}), normal({3, 3})}, .contains = {"[2, 3, 3]", "[3, 3]"}},
                     {.inputs = {normal({2, 3, 3}), normal({4, 3, 3})}, .contains = {"[2, 3, 3]", "[4, 3, 3]"}},
                     {.inputs = {normal({3}), normal({3})}, .contains = {"[3]"}},
                     {.inputs = {normal({3, 3}), index({3, 3}, 2)}, .contains = {"i32"}}}};
}

const OpCases cases{
    product("matmul", Transpose::no, Transpose::no),
    product("matmul, a transposed", Transpose::yes, Transpose::no),
    product("matmul, b transposed", Transpose::no, Transpose::yes),
    product("matmul, both transposed", Transpose::yes, Transpose::yes),
};

}  // namespace
}  // namespace engram::harness::matmul_test
