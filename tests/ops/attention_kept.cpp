/// Weights that attention keeps for its backward pass, beside computing them again: what is kept, that both ways agree,
/// and when the function keeps them.

#include "autograd/functions/attention.hpp"
#include "autograd/node.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/attention_kernels.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::attention_kept_test {
namespace {

using reference::constant;

TEST_CASE("attention: kept weights are exp(score - lse), negative where dropped", "[attention]") {
  const AttentionCall call{.keep = true, .backend = &each_device()};
  // One query that sees nothing but slots and its window: without positions, with zero queries, every score is 0.
  AttentionOptions options = attention_options(6, {6});
  options.ramp = 4;
  options.dropout = DropoutRule(0.5);
  std::vector<Array64> x = attention_numbers(
      "kept", options, {.streams = 1, .block = 1, .depth = 2, .slots = 40, .positions = {}, .span = {0.25}});
  x[kContentQuery] = constant(0, {1, 1, 2});
  const AttentionTruth got = run_attention(x, options, call);
  REQUIRE(got.kept.count() == 40 + 6);
  // z = 1.5 and a ramp of 4: masks of distances 1 to 6 are 1, 1, 0.875, 0.625, 0.375, 0.125.
  const double one = 1 / (40 + 1 + 1 + 0.875 + 0.625 + 0.375 + 0.125);
  int dropped = 0;
  for (const double weight : got.kept.data) {
    CHECK(std::abs(weight) == Approx(one).epsilon(1e-14));
    dropped += weight < 0 ? 1 : 0;
  }
  CHECK(dropped > 10);
  CHECK(dropped < 36);
  // What is not marked is what the output was made of: values of one give the sum of the weights that are left.
  for (const int side : {kPastValues, kSlotValues})
    for (double& value : x[static_cast<std::size_t>(side)].data) value = 1;
  const std::vector<double> mask = {0.125, 0.375, 0.625, 0.875, 1, 1};
  double wanted = 0;
  for (std::size_t i = 0; i < got.kept.data.size(); ++i)
    if (got.kept.data[i] > 0) wanted += 2 * one * (i < 40 ? options.slot_value_scale : mask[i - 40]);
  CHECK(run_attention(x, options, {.backend = call.backend}).out.at(0, 0, 0) == Approx(wanted).epsilon(1e-13));
}

TEST_CASE("attention: every device keeps the same weights", "[attention]") {
  Backend& device = each_device();
  AttentionOptions options = attention_options(12, {12, 1, 9});
  AttentionInputSizes sizes{.streams = 2, .block = 17, .slots = 4};
  if (GENERATE(false, true)) options.dropout = DropoutRule(0.3);
  if (GENERATE(false, true)) sizes.past_valid = {0, 5};
  if (GENERATE(false, true)) options.min_distance = 0;
  if (GENERATE(false, true)) {
    // No place lies at the very corner of a ramp, where devices differ.
    options.ramp = 4;
    sizes.span = {0.3, 0.01, 0.71};
  }
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::vector<Array64> x = attention_numbers("kept everywhere", options, sizes);
  const AttentionTruth expected = run_attention(x, options, {.dtype = dtype, .keep = true});
  const AttentionTruth got = run_attention(x, options, {.dtype = dtype, .keep = true, .backend = &device});
  const auto problems =
      compare_elements("kept", std::array{got.kept}, std::array{expected.kept}, dtype == DType::f32 ? 3e-6 : 1e-14);
  for (const std::string& problem : problems) FAIL_CHECK(problem);
}

TEST_CASE("attention: the backward pass is the same with kept weights and with scores computed again", "[attention]") {
  AttentionOptions options = attention_options(12, {12, 1, 9});
  AttentionInputSizes sizes{.streams = 3, .block = 35, .slots = 4};
  if (GENERATE(false, true)) {
    // Long enough that columns of missing positions are left out.
    options = attention_options(60, {60, 1, 41});
    sizes.slots = -1;
  }
  if (GENERATE(false, true)) options.dropout = DropoutRule(0.3);
  if (GENERATE(false, true)) sizes.past_valid = {0, 5, 12};
  if (GENERATE(false, true)) options.min_distance = 0;
  // Ramps that end, or begin, exactly at a slot: corners that are no part of the softmax.
  if (GENERATE(false, true)) {
    options.ramp = 4;
    sizes.span = {0.25, 0, 2.0 / 3};
    if (GENERATE(false, true)) {
      sizes.query_spans = true;
      sizes.span = {0.25, 0, 2.0 / 3, 0.5};
      sizes.position_values = AttentionInputSizes::Positions::shared;
    }
  }
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::vector<Array64> x = attention_numbers("kept or again", options, sizes);
  const AttentionTruth again = run_attention(x, options, {.dtype = dtype});
  const AttentionTruth kept = run_attention(x, options, {.dtype = dtype, .keep = true});
  CHECK(compare_bits("forward", std::array{kept.out, kept.lse}, std::array{again.out, again.lse}).empty());
  Array64 dout = again.out;
  reference::RandomArrays random(5);
  for (double& number : dout.data) number = random.number();
  const auto problems = compare_elements("gradient", run_attention_backward(x, options, kept, dout, {.dtype = dtype}),
                                         run_attention_backward(x, options, again, dout, {.dtype = dtype}),
                                         dtype == DType::f32 ? 3e-6 : 1e-14);
  for (const std::string& problem : problems) FAIL_CHECK(problem);
}

TEST_CASE("attention: weights are kept by a training tape, up to a number of bytes, or for who asks", "[attention]") {
  Backend& backend = each_device();
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  step.begin({});
  const AttentionOptions options = attention_options(5, {5, 2});
  const AttentionInputSizes sizes{.streams = 2, .block = 3, .slots = 4};
  const std::vector<Array64> x = attention_numbers("limit", options, sizes);
  const std::int64_t bytes = 2 * 3 * ((4 + 5) + (4 + 2)) * 8;
  const auto kept = [&](Tape::Mode mode, std::int64_t limit) {
    Tape tape(step, mode);
    const auto leaf = [&](int place) {
      return tape.leaf(to_device(backend, memory, x[static_cast<std::size_t>(place)], {}, DType::f64));
    };
    const AttentionResult found = attention({{.content_query = leaf(kContentQuery),
                                              .past_keys = leaf(kPastKeys),
                                              .past_values = leaf(kPastValues),
                                              .keys = leaf(kKeys),
                                              .values = leaf(kValues),
                                              .slot_keys = leaf(kSlotKeys),
                                              .slot_values = leaf(kSlotValues)}},
                                            options, limit);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < tape.size(); ++i)
      for (const Node::Saved& saved : tape.entry(i).node->saved())
        if (saved.name == "kept" && saved.tensor) count = saved.tensor.count();
    if (mode == Tape::Mode::training) CHECK((found.kept ? found.kept.count() : 0) == count);
    return (found.kept ? found.kept.count() : 0) * 8;
  };
  CHECK(kept(Tape::Mode::training, bytes) == (backend.keeps_attention() ? bytes : 0));
  CHECK(kept(Tape::Mode::training, kKeepWeights) == bytes);
  CHECK(kept(Tape::Mode::training, bytes - 1) == 0);
  CHECK(kept(Tape::Mode::training, 0) == 0);
  CHECK(kept(Tape::Mode::inference, bytes) == 0);
  CHECK(kept(Tape::Mode::inference, kKeepWeights) == bytes);
}

}  // namespace
}  // namespace engram::harness::attention_kept_test
