/// One softmax over context and persistent slots equals two passes put together by their lse ([all-attention 2], T8):
/// what separate kernels for the two parts would rely on.

#include <cmath>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_merge_test {
namespace {

struct Passes {
  AttentionOptions context_options = attention_options(40, {40, 11, 3}), slot_options = attention_options(0, {0, 0, 0});
  std::vector<Array64> joint, context, slots;

  Passes() {
    context_options.ramp = 8;
    joint =
        attention_numbers("T8", context_options, {.streams = 5, .block = 37, .slots = 13, .span = {0.51, 0.123, 0.9}});
    context = slots = joint;
    context[kSlotKeys] = context[kSlotValues] = {};
    for (const AttentionArgument place : {kPastKeys, kPastValues, kKeys, kValues, kPositionKeys, kSpan})
      slots[place] = {};
  }
};

double element(const Array64& x, std::int64_t b, std::int64_t h, std::int64_t m, std::int64_t i, std::int64_t depth) {
  return x.at(b, m, h * depth + i);
}

/// out = sum of exp(lse - common lse) times each pass's out.
AttentionTruth merged(const AttentionTruth& a, const AttentionTruth& b) {
  AttentionTruth both{reference::zeros(a.out.shape), reference::zeros(a.lse.shape)};
  const std::int64_t depth = a.out.axis(2) / a.lse.axis(1);
  for (std::int64_t s = 0; s < a.lse.axis(0); ++s)
    for (std::int64_t h = 0; h < a.lse.axis(1); ++h)
      for (std::int64_t m = 0; m < a.lse.axis(2); ++m) {
        const double largest = std::max(a.lse.at(s, h, m), b.lse.at(s, h, m));
        const double wa = std::exp(a.lse.at(s, h, m) - largest), wb = std::exp(b.lse.at(s, h, m) - largest);
        both.lse.at(s, h, m) = largest + std::log(wa + wb);
        for (std::int64_t i = 0; i < depth; ++i)
          both.out.at(s, m, h * depth + i) =
              (wa * element(a.out, s, h, m, i, depth) + wb * element(b.out, s, h, m, i, depth)) / (wa + wb);
      }
  return both;
}

void check(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) FAIL_CHECK(fault);
  CHECK(faults.empty());
}

TEST_CASE("T8: context pass and persistent pass merged by lse equal the joint kernel", "[attention][worked]") {
  const Passes passes;
  const AttentionTruth joint = run_attention(passes.joint, passes.context_options);
  const AttentionTruth both =
      merged(run_attention(passes.context, passes.context_options), run_attention(passes.slots, passes.slot_options));
  check(compare_elements("out and lse", std::array{both.out, both.lse}, std::array{joint.out, joint.lse}, 1e-13));
}

TEST_CASE("T8: each pass run backwards with the joint out and lse gives the joint gradients", "[attention][worked]") {
  const Passes passes;
  const AttentionTruth joint = run_attention(passes.joint, passes.context_options);
  const Array64 dout = input_values("T8 cotangent", {normal({5, 37, 9})}, DType::f32)[0];
  const std::vector<Array64> wanted = run_attention_backward(passes.joint, passes.context_options, joint, dout);
  std::vector<Array64> got = run_attention_backward(passes.context, passes.context_options, joint, dout);
  const std::vector<Array64> of_slots = run_attention_backward(passes.slots, passes.slot_options, joint, dout);
  for (std::size_t k = 0; k < got[kContentQuery].data.size(); ++k)
    got[kContentQuery].data[k] += of_slots[kContentQuery].data[k];
  got[kSlotKeys] = of_slots[kSlotKeys];
  got[kSlotValues] = of_slots[kSlotValues];
  check(compare_elements("gradient of input", got, wanted, 1e-13));
}

TEST_CASE("T8: separate softmaxes with one persistent slot add its value to every output", "[attention][worked]") {
  Passes passes;
  passes.slot_options.slot_value_scale = 1;  // the square root of N = 1
  const std::int64_t heads = 3, depth = 3;
  passes.slots[kSlotKeys] = input_values("T8 key", {normal({heads, 1, depth})}, DType::f32)[0];
  passes.slots[kSlotValues] = input_values("T8 value", {normal({heads, 1, depth})}, DType::f32)[0];
  const AttentionTruth alone = run_attention(passes.slots, passes.slot_options);
  for (std::int64_t b = 0; b < alone.out.axis(0); ++b)
    for (std::int64_t m = 0; m < alone.out.axis(1); ++m)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < depth; ++i)
          if (element(alone.out, b, h, m, i, depth) != passes.slots[kSlotValues].at(h, 0, i))
            FAIL_CHECK("stream " << b << ", query " << m << ", head " << h << ", element " << i);
  CHECK(alone.out.count() == 5 * 37 * 9);
}

}  // namespace
}  // namespace engram::harness::attention_merge_test
