#include "autograd/functions/embedding.hpp"
#include "autograd/functions/check_ids.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::embedding_test {
namespace {

constexpr double kFactor = 1.5;

Array64 rows_of(std::span<const Array64> x) {
  Array64 y = reference::scale(reference::embedding(x[0], integers(x[1])), kFactor);
  y.shape = x[1].shape;
  y.shape.push_back(x[0].axis(1));
  return y;
}

const OpCases cases{
    OpCase{.name = "embedding",
           .inputs = {{normal({5, 3}), index({4, 7}, 5)},  // rows are met several times, some never
                      {normal({1, 1}), index({1}, 1)},
                      {normal({6, 16}), index({35}, 6)},
                      {normal({11, 131}), index({131}, 11)},
                      {normal({4, 3}), integers({2, 1, 2, 1}, {3, 3, 0, 3})}},
           .function = [](std::span<const Variable> x) { return embedding(x[0], x[1].value(), kFactor); },
           .reference = rows_of,
           .tolerance = {.bf16 = kRounding},
           .roles = {Role::matrix},
           .errors = {{.inputs = {normal({5}), index({2}, 5)}, .contains = {"[V, n]", "[5]"}},
                      {.inputs = {normal({5, 3}), normal({2})}, .contains = {"the index", "i32", "f32"}},
                      {.inputs = {normal({5, 3}), index({1, 1, 1, 1, 2}, 5)},
                       .contains = {"at most 4 axes", "[1, 1, 1, 1, 2]"}}}},
    // Rows of activations, whose gradients are bf16 beside bf16.
    OpCase{.name = "embedding, of activations",
           .inputs = {{normal({5, 3}), index({4, 7}, 5)}, {normal({35, 16}), index({35}, 35)}},
           .function = [](std::span<const Variable> x) { return embedding(x[0], x[1].value(), kFactor); },
           .reference = rows_of,
           .tolerance = {.bf16 = 2 * kRounding}},
};

TEST_CASE("embedding: debug builds name an index outside the table", "[ops]") {
  if (!ids_are_checked()) return;  // release builds do not look
  Backend& backend = *available_backends().front();
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  Tape tape(step);
  const Variable table =
      tape.constant(to_device(backend, memory, reference::zeros({5, 2}), normal({5, 2}), DType::f32));
  for (const double bad : {5.0, -1.0}) {
    const Input ids = harness::integers({2}, {0, bad});
    const Tensor index = to_device(backend, memory, Array64{{2}, {0, bad}}, ids, DType::f32);
    CHECK_THROWS_WITH(embedding(table, index),
                      ContainsSubstring(text("[0, 5), got ", static_cast<int>(bad), " at place 1")));
  }
}

}  // namespace
}  // namespace engram::harness::embedding_test
