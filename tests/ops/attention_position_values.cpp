/// Position values of attention ([all-attention 1.8]): op-table entries, and what they must not or must change.

#include "autograd/functions/attention.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_position_values_test {
namespace {

using Positions = AttentionInputSizes::Positions;

AttentionOptions own_position_too(AttentionOptions options) {
  options.min_distance = 0;
  return options;
}
AttentionOptions everything_else(std::vector<std::int32_t> windows) {
  AttentionOptions options = attention_options(12, std::move(windows));
  options.ramp = 4;
  options.past_count = 29;
  options.dropout = DropoutRule(0.3);
  return options;
}

const AttentionCases cases{
    {"attention, position values",
     attention_options(7, {7, 7}),
     {{.position_values = Positions::shared},
      {.streams = 1,
       .block = 1,
       .depth = 5,
       .slots = 2,
       .positions = Positions::none,
       .position_values = Positions::per_head},
      {.block = 19, .depth = 1, .positions = Positions::none, .position_values = Positions::shared},
      {.streams = 5,
       .block = 3,
       .positions = Positions::per_head,
       .position_values = Positions::per_head,
       .position_query = true},
      // A depth that the fused form of cards would serve.
      {.streams = 1, .block = 9, .depth = 16, .slots = 3, .position_values = Positions::shared}}},
    {"attention, position values with the own position",
     own_position_too(attention_options(6, {6, 6, 6})),
     {{.slots = 3, .position_values = Positions::per_head},
      {.streams = 1, .block = 9, .positions = Positions::per_head, .position_values = Positions::shared}}},
    {"attention, position values over several tiles",
     attention_options(37, {37}),
     {{.streams = 1, .block = 67, .depth = 2, .slots = 3, .position_values = Positions::shared}}},
    {"attention, position values beside slots too many to be copied",
     attention_options(5, {5}),
     {{.streams = 1, .block = 8, .depth = 32, .slots = 520, .position_values = Positions::shared}}},
    {"attention, position values with ragged windows, spans, dropout and a ring",
     everything_else({12, 0, 9}),
     {{.position_values = Positions::shared, .span = {3.5 / 12, 0.05, 0.88}},
      {.slots = 2, .position_values = Positions::per_head, .span = {0.05, 0.4, 0.59}, .past_valid = {0, 7}},
      {.streams = 1,
       .block = 1,
       .slots = 4,
       .position_values = Positions::shared,
       .span = {0, 0.25, 1},
       .span_is_constant = true}}},
    {"attention, position values and nothing to see",
     attention_options(3, {0, 0}),
     {{.position_values = Positions::shared}, {.slots = 2, .position_values = Positions::per_head}}},
};

/// One table on both sides (`pos_value = shared`).
OpCase one_table(std::string name, AttentionOptions options, Positions positions, std::int64_t keep_bytes = 0) {
  OpCase op = attention_case(std::move(name), options,
                             {{.slots = 2, .positions = positions}, {.streams = 1, .block = 9, .positions = positions}},
                             keep_bytes);
  const Function separate = op.function;
  op.function = [separate](std::span<const Variable> x) {
    std::vector<Variable> all(x.begin(), x.end());
    all[kPositionValues] = all[kPositionKeys];
    return separate(all);
  };
  op.reference = [options](std::span<const Array64> x) {
    std::vector<Array64> all(x.begin(), x.end());
    all[kPositionValues] = all[kPositionKeys];
    AttentionTruth truth = attention_truth(all, options);
    return std::vector{std::move(truth.out), std::move(truth.lse)};
  };
  return op;
}
const OpCases shared{
    one_table("attention, one table for keys and values", attention_options(6, {6, 4}), Positions::shared),
    one_table("attention, one table for keys and values, weights kept", attention_options(6, {6, 4}), Positions::shared,
              1 << 20),
    one_table("attention, one table for keys and values of every head", own_position_too(attention_options(6, {6, 4})),
              Positions::per_head)};

Array64 cotangent(const Array64& x) {
  return input_values("cotangent", {normal(Shape(std::span<const std::int64_t>(x.shape)))}, DType::f32)[0];
}
void check(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) FAIL_CHECK(fault);
  CHECK(faults.empty());
}

TEST_CASE("attention: position values of zero change nothing", "[attention]") {
  AttentionOptions options = attention_options(40, {40, 11});
  options.ramp = 8;
  options.dropout = DropoutRule(0.3);
  const AttentionCall call{
      .dtype = GENERATE(DType::f32, DType::f64), .keep = GENERATE(false, true), .backend = &each_device()};
  std::vector<Array64> x =
      attention_numbers("zero values", options, {.block = 35, .slots = 3, .span = {0.5, 0.1}, .past_valid = {40, 3}});
  const Array64 dout = cotangent(x[kContentQuery]);
  const AttentionTruth without = run_attention(x, options, call);
  std::vector<Array64> wanted = run_attention_backward(x, options, without, dout, call);
  x[kPositionValues] = reference::zeros(x[kPositionKeys].shape);
  const AttentionTruth with = run_attention(x, options, call);
  std::vector<Array64> got = run_attention_backward(x, options, with, dout, call);
  CHECK(with.out.data == without.out.data);
  CHECK(with.lse.data == without.lse.data);
  // Their gradient is there all the same.
  double largest = 0;
  for (const double gradient : got[kPositionValues].data) largest = std::max(largest, std::abs(gradient));
  CHECK(largest > 0.1);
  got[kPositionValues] = {};
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].data == wanted[i].data);
  }
}

TEST_CASE("attention: one position value for all distances is added to the context's share", "[attention]") {
  AttentionOptions options = attention_options(40, {40, 11});
  options.ramp = 8;
  const AttentionCall call{.backend = &each_device()};
  std::vector<Array64> x = attention_numbers("constant values", options, {.block = 35, .span = {0.5, 0.1}});
  AttentionTruth wanted = run_attention(x, options, call);
  x[kPositionValues] = reference::zeros(x[kPositionKeys].shape);
  for (std::size_t k = 0; k < x[kPositionValues].data.size(); ++k)
    x[kPositionValues].data[k] = 1 + static_cast<double>(k % 3);
  for (std::size_t k = 0; k < wanted.out.data.size(); ++k) wanted.out.data[k] += 1 + static_cast<double>(k % 3);
  const AttentionTruth got = run_attention(x, options, call);
  check(compare_elements("out and lse", std::array{got.out, got.lse}, std::array{wanted.out, wanted.lse}, 1e-14));
}

}  // namespace
}  // namespace engram::harness::attention_position_values_test
