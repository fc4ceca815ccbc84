#include "autograd/functions/window_attention_dot.hpp"

#include <array>

#include "autograd/tape.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/window_attention.hpp"

namespace engram::harness::window_attention_dot_test {
namespace {

/// Arguments of one call: keys, queries, values, position keys, position values, preceding.
std::vector<Input> arguments(std::int64_t window, std::int64_t streams, std::int64_t carried, std::int64_t block,
                             std::int64_t width, std::int64_t value_width, Input preceding) {
  // With normal numbers nearly all of the weight would be one row's.
  return {uniform({streams, carried + block, width}, -1, 1),
          uniform({streams, block, width}, -1, 1),
          normal({streams, carried + block, value_width}),
          uniform({window, width}, -1, 1),
          normal({window, value_width}),
          std::move(preceding)};
}

/// Sequences that begin in the block, were carried over, or are as long as a position pleases.
const Input kTwoArticles = integers({2, 6}, {0, 1, 2, 0, 1, 2, 7, 8, 9, 10, 0, 1});
std::vector<std::vector<Input>> shapes(std::int64_t window) {
  return {
      arguments(window, 2, 1, 6, 3, 4, kTwoArticles),          // fewer carried rows than a window needs
      arguments(window, 2, 2, 6, 17, 16, kTwoArticles),        // as many; more than a vector, and exactly one
      arguments(window, 2, 7, 6, 9, 1, kTwoArticles),          // more
      arguments(window, 2, 0, 6, 1, 35, kTwoArticles),         // none
      arguments(window, 7, 1, 1, 5, 129, index({7, 1}, 4)),    // one position of several streams
      arguments(window, 2, 4, 9, 131, 64, index({2, 9}, 12)),  // columns of two blocks of threads
      arguments(window, 2, 5, 70, 7, 6, index({2, 70}, 1000)),
  };
}
std::vector<std::vector<Input>> without(std::vector<std::vector<Input>> inputs, std::vector<std::size_t> absences) {
  for (std::vector<Input>& list : inputs)
    for (const std::size_t input : absences) list[input] = absent();
  return inputs;
}

OpCase dot(const char* name, std::int64_t window, std::vector<std::vector<Input>> inputs) {
  return {.name = name,
          .inputs = std::move(inputs),
          .function =
              [=](std::span<const Variable> x) {
                WindowedResult result = window_attention_dot(x[0], x[1], x[2], x[3], x[4], x[5].value(), window);
                return std::array{std::move(result.context), x[0].tape().constant(std::move(result.weights))};
              },
          .reference =
              [=](std::span<const Array64> x) {
                auto [context, weights] = reference::dot_window(x[0], x[1], x[2], x[3], x[4], x[5], window);
                return std::vector<Array64>{std::move(context), std::move(weights)};
              },
          .tolerance = {.bf16 = 2 * kRounding, .bf16_sums = 2 * kRounding},
          .roles = {Role::activation, Role::activation, Role::activation, Role::matrix, Role::matrix}};
}

OpCase with_errors() {
  OpCase op = dot("window_attention_dot", 3, shapes(3));
  const Input before = integers({2, 4}, {0, 1, 2, 3, 0, 1, 2, 3});
  const Input keys = normal({2, 5, 3}), queries = normal({2, 4, 3}), rows = normal({2, 5, 6});
  const Input of_keys = normal({3, 3}), of_values = normal({3, 6});
  op.errors = {
      {.inputs = {keys, normal({4, 3}), rows, of_keys, of_values, before},
       .contains = {"queries", "[B, M, k]", "[4, 3]"}},
      {.inputs = {normal({2, 3, 3}), queries, rows, of_keys, of_values, before},
       .contains = {"keys", "[2, 4]", "[2, 3, 3]"}},
      {.inputs = {normal({2, 5, 4}), queries, rows, of_keys, of_values, before},
       .contains = {"keys", "[2, 5, 3]", "[2, 5, 4]"}},
      {.inputs = {keys, queries, normal({2, 4, 6}), of_keys, of_values, before},
       .contains = {"values", "[2, 4, 6] beside [2, 5, 3]"}},
      {.inputs = {keys, queries, rows, normal({4, 3}), of_values, before},
       .contains = {"position keys", "[3, 3]", "[4, 3]"}},
      {.inputs = {keys, queries, rows, of_keys, normal({3, 3}), before},
       .contains = {"position values", "[3, 6]", "[3, 3]"}},
      {.inputs = {keys, queries, rows, of_keys, of_values, integers({2, 2}, {0, 1, 2, 3})},
       .contains = {"preceding", "[2, 4]", "[2, 2]"}},
      {.inputs = {keys, queries, rows, of_keys, of_values, before},
       .contains = {"window must be at least 1", "got 0"},
       .function = dot("", 0, {}).function},
  };
  return op;
}

const OpCases cases{
    with_errors(),
    dot("window_attention_dot, one position", 1, shapes(1)),
    dot("window_attention_dot, without positions", 3, without(shapes(3), {3, 4})),
    dot("window_attention_dot, positions of keys alone", 4, without(shapes(4), {4})),
    dot("window_attention_dot, positions of values alone", 2, without(shapes(2), {3})),
    dot("window_attention_dot, windows longer than all rows", 20, without(shapes(20), {4})),
    // A variable in several places.
    OpCase{.name = "window_attention_dot, of one variable",
           .inputs = {{uniform({2, 5, 6}, -1, 1), normal({2, 6}), integers({2, 5}, {3, 0, 1, 2, 3, 0, 1, 2, 3, 4})}},
           .function =
               [](std::span<const Variable> x) {
                 return window_attention_dot(x[0], x[0], x[0], x[1], x[1], x[2].value(), 2).context;
               },
           .reference =
               [](std::span<const Array64> x) {
                 return reference::dot_window(x[0], x[0], x[0], x[1], x[1], x[2], 2).context;
               },
           .tolerance = {.bf16 = 3 * kRounding, .bf16_sums = 2 * kRounding},
           .roles = {Role::activation, Role::matrix}},
};

}  // namespace
}  // namespace engram::harness::window_attention_dot_test
