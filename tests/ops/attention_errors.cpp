/// Op-table entry of attention: calls that must be refused.

#include "autograd/functions/attention.hpp"
#include "tests/ops/attention_truth.hpp"

namespace engram::harness::attention_errors_test {
namespace {

const AttentionOptions kOptions = [] {
  AttentionOptions options = attention_options(4, {4, 2});
  options.ramp = 2;
  return options;
}();

const AttentionInputSizes kGood{
    .slots = 3, .position_values = AttentionInputSizes::Positions::shared, .span = {0.4, 0.6}, .past_valid = {1, 2}};

/// The good call with one argument replaced.
BadCall with(AttentionArgument place, Input input, std::vector<std::string> contains) {
  contains.push_back("attention: ");
  std::vector<Input> inputs = attention_inputs(kOptions, kGood);
  inputs[place] = std::move(input);
  return {std::move(inputs), std::move(contains)};
}

/// The good call with other options.
template <class Change>
BadCall with_options(Change change, std::vector<std::string> contains) {
  contains.push_back("attention: ");
  AttentionOptions options = kOptions;
  change(options);
  return {attention_inputs(kOptions, kGood), std::move(contains), attention_case("", options, {kGood}).function};
}

OpCase refused() {
  OpCase op = attention_case("attention, wrong calls", kOptions, {kGood});
  op.errors = {
      with(kContentQuery, normal({2, 6}), {"[B, M, H D]", "[2, 6]"}),
      with(kContentQuery, normal({2, 5, 7}), {"H = 2", "[2, 5, 7]"}),
      with(kContentQuery, normal({2, 4, 6}), {"keys", "[2, 4, 6]", "[2, 5, 6]"}),
      with(kPositionQuery, normal({2, 5, 4}), {"position query", "[2, 5, 6]", "[2, 5, 4]"}),
      with(kKeys, normal({2, 5, 4}), {"block keys and values", "[2, 5, 4]", "[2, 5, 6]"}),
      with(kKeys, absent(), {"block keys and values"}),
      with(kPastKeys, absent(), {"past keys and values"}),
      with(kPastValues, normal({12, 2}), {"past keys and values", "[12, 3]", "[12, 2]"}),
      with(kPositionKeys, normal({3, 3}), {"position keys", "P >= 4", "D = 3", "[3, 3]"}),
      with(kPositionKeys, normal({4, 2}), {"position keys", "[4, 2]"}),
      with(kSlotKeys, normal({2, 4, 3}), {"slot keys and values", "[2, 4, 3]", "[2, 3, 3]"}),
      with(kPositionValues, normal({3, 3}), {"position values", "P >= 4", "D = 3", "[3, 3]"}),
      with(kPositionValues, normal({4, 5}), {"position values", "[4, 5]"}),
      with(kPositionValues, integers({4, 3}, std::vector<double>(12)), {"every input", "f32", "i32"}),
      with(kSpan, uniform({3}, 0, 1), {"span", "[H] = [2]", "[B, M, H] = [2, 5, 2]", "[3]"}),
      with(kSpan, uniform({2, 2, 5}, 0, 1), {"span", "[B, M, H] = [2, 5, 2]", "[2, 2, 5]"}),
      with(kSpan, uniform({2, 5}, 0, 1), {"span", "[B, M, H] = [2, 5, 2]", "[2, 5]"}),
      with(kPastValid, integers({3}, {0, 0, 0}), {"past_valid", "[2]", "[3]"}),
      with(kPastValid, uniform({2}, 0, 1), {"past_valid", "i32", "f32"}),
      with(kSpan, integers({2}, {0, 1}), {"every input", "f32", "i32"}),
      with_options([](AttentionOptions& o) { o.heads = 0; }, {"H = 0"}),
      with_options([](AttentionOptions& o) { o.min_distance = 2; }, {"min_distance 0 or 1", "2"}),
      with_options([](AttentionOptions& o) { o.max_distance = -1; }, {"max_distance >= 0", "-1"}),
      with_options([](AttentionOptions& o) { o.ramp = -3; }, {"ramp >= 0", "-3"}),
      with_options([](AttentionOptions& o) { o.past_count = -1; }, {"past_count >= 0", "-1"}),
      with_options([](AttentionOptions& o) { o.max_distance = 0; }, {"max_distance 0", "keys, positions or a span"}),
      with_options([](AttentionOptions& o) { o.max_distance = 3; }, {"max_distance 3", "longest 4"}),
      with_options([](AttentionOptions& o) { o.windows = HeadWindows({4}); }, {"one window per head", "1 windows"}),
      with_options(
          [](AttentionOptions& o) {
            o.windows = HeadWindows({4, 3});
          },
          {"past keys", "[14, 3]", "[12, 3]"}),
      with_options(
          [](AttentionOptions& o) {
            o.windows = HeadWindows({0, 0});
          },
          {"past keys", "[0, 3]", "[12, 3]"}),
  };
  BadCall both_slot_shapes = with(kSlotKeys, normal({2, 3, 4}), {"[H, N, D]", "[2, N, 3]", "[2, 3, 4]"});
  both_slot_shapes.inputs[kSlotValues] = normal({2, 3, 4});
  op.errors.push_back(std::move(both_slot_shapes));
  BadCall no_past = with(kPastKeys, absent(), {"past keys", "[12, 3]", "got no tensor"});
  no_past.inputs[kPastValues] = absent();
  op.errors.push_back(std::move(no_past));
  BadCall no_block = with(kKeys, absent(), {"keys", "[2, 5, 6]", "got no tensor"});
  no_block.inputs[kValues] = absent();
  op.errors.push_back(std::move(no_block));

  const AttentionOptions slots_only = attention_options(0, {0, 0});
  BadCall nothing{
      attention_inputs(slots_only, {}), {"attention: ", "neither"}, attention_case("", slots_only, {{}}).function};
  op.errors.push_back(std::move(nothing));
  return op;
}

const OpCases cases{refused()};

}  // namespace
}  // namespace engram::harness::attention_errors_test
