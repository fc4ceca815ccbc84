#include "autograd/functions/window_attention_additive.hpp"

#include <array>

#include "autograd/tape.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/window_attention.hpp"

namespace engram::harness::window_attention_additive_test {
namespace {

/// Arguments of one call: keys, queries, score vector, values, preceding. With a score vector of normal numbers nearly
/// all of the weight would be one row's, and the gradients of the scores what rounding leaves of a difference.
std::vector<Input> arguments(std::int64_t streams, std::int64_t carried, std::int64_t block, std::int64_t width,
                             std::int64_t value_width, Input preceding) {
  return {normal({streams, carried + block, width}), normal({streams, block, width}), uniform({width}, -0.5, 0.5),
          normal({streams, carried + block, value_width}), std::move(preceding)};
}

OpCase additive(const char* name, AdditiveWindow options, std::vector<std::vector<Input>> inputs) {
  return {.name = name,
          .inputs = std::move(inputs),
          .function =
              [=](std::span<const Variable> x) {
                WindowedResult result = window_attention_additive(x[0], x[1], x[2], x[3], x[4].value(), options);
                return std::array{std::move(result.context), x[0].tape().constant(std::move(result.weights))};
              },
          .reference =
              [=](std::span<const Array64> x) {
                auto [context, weights] =
                    reference::additive_window(x[0], x[1], x[2], x[3], x[4], options.window, options.count_missing);
                return std::vector<Array64>{std::move(context), std::move(weights)};
              },
          .tolerance = {.bf16 = 2 * kRounding},
          .roles = {Role::activation, Role::activation, Role::vector}};
}

/// Sequences that begin in the block, were carried over, or are as long as a position pleases.
const Input kTwoArticles = integers({2, 6}, {0, 1, 2, 0, 1, 2, 7, 8, 9, 10, 0, 1});
const std::vector<std::vector<Input>> kShapes{
    arguments(2, 2, 6, 3, 4, kTwoArticles),             // fewer carried rows than a window has
    arguments(2, 3, 6, 17, 16, kTwoArticles),           // as many; more than a vector, and exactly one
    arguments(2, 7, 6, 33, 1, kTwoArticles),            // more
    arguments(2, 0, 6, 1, 35, kTwoArticles),            // none
    arguments(3, 1, 1, 5, 129, index({3, 1}, 4)),       // one position
    arguments(2, 4, 9, 131, 64, index({2, 9}, 12)),     // columns of two blocks of threads
    arguments(2, 5, 131, 7, 6, index({2, 131}, 1000)),  // several tiles
};

OpCase with_errors() {
  OpCase op = additive("window_attention_additive", {.window = 3}, kShapes);
  const Input before = integers({2, 4}, {0, 1, 2, 3, 0, 1, 2, 3});
  const Input keys = normal({2, 5, 3}), queries = normal({2, 4, 3}), vector = normal({3}), rows = normal({2, 5, 6});
  op.errors = {
      {.inputs = {keys, normal({4, 3}), vector, rows, before}, .contains = {"queries", "[B, M, d]", "[4, 3]"}},
      {.inputs = {normal({5, 3}), queries, vector, rows, before}, .contains = {"keys", "[B, C + M, n]", "[5, 3]"}},
      {.inputs = {normal({2, 3, 3}), queries, vector, rows, before}, .contains = {"keys", "[2, 4]", "[2, 3, 3]"}},
      {.inputs = {normal({3, 5, 3}), queries, vector, rows, before}, .contains = {"keys", "[2, 4]", "[3, 5, 3]"}},
      {.inputs = {normal({2, 5, 4}), queries, vector, rows, before}, .contains = {"keys", "[2, 5, 3]", "[2, 5, 4]"}},
      {.inputs = {keys, queries, normal({4}), rows, before}, .contains = {"score vector", "[3]", "[4]"}},
      {.inputs = {keys, queries, vector, normal({2, 4, 6}), before},
       .contains = {"values", "[2, 4, 6] beside [2, 5, 3]"}},
      {.inputs = {keys, queries, vector, rows, integers({2, 2}, {0, 1, 2, 3})},
       .contains = {"preceding", "[2, 4]", "[2, 2]"}},
      {.inputs = {keys, queries, vector, rows, normal({2, 4})}, .contains = {"preceding must be i32", "f32"}},
      {.inputs = {keys, queries, vector, rows, before},
       .contains = {"window must be at least 1", "got 0"},
       .function = additive("", {.window = 0}, {}).function},
  };
  return op;
}

const OpCases cases{
    with_errors(),
    additive("window_attention_additive, one position", {.window = 1}, kShapes),
    additive("window_attention_additive, windows longer than all rows", {.window = 40}, kShapes),
    additive("window_attention_additive, missing positions count", {.window = 3, .count_missing = true}, kShapes),
    additive("window_attention_additive, long windows with missing positions", {.window = 71, .count_missing = true},
             kShapes),
    // A variable in several places.
    OpCase{.name = "window_attention_additive, of one variable",
           .inputs = {{normal({2, 5, 6}), normal({6}), integers({2, 5}, {3, 0, 1, 2, 3, 0, 1, 2, 3, 4})}},
           .function =
               [](std::span<const Variable> x) {
                 return window_attention_additive(x[0], x[0], x[1], x[0], x[2].value(), {.window = 2}).context;
               },
           .reference =
               [](std::span<const Array64> x) {
                 return reference::additive_window(x[0], x[0], x[1], x[0], x[2], 2).context;
               },
           .tolerance = {.bf16 = 3 * kRounding},
           .roles = {Role::activation, Role::vector}},
};

}  // namespace
}  // namespace engram::harness::window_attention_additive_test
