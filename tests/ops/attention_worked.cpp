/// Worked numbers and properties of [all-attention 12], at the level of the operation: T2, T3,
/// T7, T20, T22, and queries that see nothing.

#include <cmath>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_worked_test {
namespace {

using reference::array;
using reference::constant;
using reference::zeros;

struct Precision {
  DType dtype;
  double tolerance;
};
const Precision kDouble{DType::f64, 1e-14};
const Precision kSingle{DType::f32, 1e-6};

AttentionOptions plain_options(int max_distance, int heads = 1) {
  AttentionOptions options;
  options.heads = heads;
  options.max_distance = max_distance;
  if (max_distance > 0)
    options.windows = HeadWindows(std::vector<std::int32_t>(static_cast<std::size_t>(heads), max_distance));
  return options;
}

/// T2's layer: a zero query, S = 8, R = 4, zeta = 0.25, N = 4, all vectors of length 1.
struct ZeroQuery {
  AttentionOptions options = plain_options(8);
  std::vector<Array64> x{kAttentionArguments};

  ZeroQuery() {
    options.ramp = 4;
    options.slot_value_scale = 2;
    x[kContentQuery] = x[kKeys] = x[kValues] = zeros({1, 1, 1});
    x[kPastKeys] = array({8, 1}, {1, -2, 3, -4, 5, -6, 7, -8});
    x[kPastValues] = array({8, 1}, {8, 7, 6, 5, 4, 3, 2, 1});
    x[kSlotKeys] = constant(3, {1, 4, 1});
    x[kSlotValues] = zeros({1, 4, 1});
    x[kSpan] = array({1}, {0.25});
  }
};

TEST_CASE("T2: weights of a zero query are the mask's shares", "[attention][worked]") {
  const Precision precision = GENERATE(kDouble, kSingle);
  const ZeroQuery layer;
  const AttentionTruth result = run_attention(layer.x, layer.options, {.dtype = precision.dtype});
  CHECK(result.out.at(0, 0, 0) == Approx(26.0 / 17).epsilon(precision.tolerance));
  CHECK(result.lse.at(0, 0, 0) == Approx(std::log(8.5)).epsilon(precision.tolerance));

  const double context[] = {2.0 / 17, 2.0 / 17, 2.0 / 17, 3.0 / 34, 1.0 / 17, 1.0 / 34, 0, 0};
  for (std::int64_t slot = 0; slot < 12; ++slot) {
    CAPTURE(slot);
    std::vector<Array64> one = layer.x;
    one[kPastValues] = zeros({8, 1});
    if (slot < 8)
      one[kPastValues].at(7 - slot, 0) = 1;
    else
      one[kSlotValues].at(0, slot - 8, 0) = 0.5;
    const double weight = run_attention(one, layer.options, {.dtype = precision.dtype}).out.at(0, 0, 0);
    CHECK(weight == Approx(slot < 8 ? context[slot] : 2.0 / 17).epsilon(precision.tolerance));
  }
}

TEST_CASE("T2: the span's gradient in the three modes of the ramp's ends", "[attention][worked]") {
  const Precision precision = GENERATE(kDouble, kSingle);
  const bool keep = GENERATE(false, true);
  Backend& backend = each_device();
  ZeroQuery layer;
  if (GENERATE(false, true)) layer.x[kSpan].shape = {1, 1, 1};  // the span of the only query
  const auto gradient = [&](RampGradient mode) {
    layer.options.ramp_gradient = mode;
    const AttentionCall call{.dtype = precision.dtype, .keep = keep, .backend = &backend};
    const AttentionTruth forward = run_attention(layer.x, layer.options, call);
    return run_attention_backward(layer.x, layer.options, forward, constant(1, {1, 1, 1}), call)[kSpan].data[0];
  };
  CHECK(gradient(RampGradient::inclusive) == Approx(1180.0 / 289).epsilon(10 * precision.tolerance));
  CHECK(gradient(RampGradient::right) == Approx(1080.0 / 289).epsilon(10 * precision.tolerance));
  CHECK(gradient(RampGradient::open) == Approx(708.0 / 289).epsilon(10 * precision.tolerance));
}

TEST_CASE("T3: one context slot beside persistent slots with zero keys", "[attention][worked]") {
  const Precision precision = GENERATE(kDouble, kSingle);
  AttentionOptions options = plain_options(1);
  options.score_scale = 0.5;
  options.slot_value_scale = std::sqrt(3.0);
  std::vector<Array64> x(kAttentionArguments);
  x[kContentQuery] = array({1, 1, 1}, {2});
  x[kKeys] = x[kValues] = zeros({1, 1, 1});
  x[kPastKeys] = array({1, 1}, {0.7});
  x[kPastValues] = array({1, 1}, {1});
  x[kSlotKeys] = x[kSlotValues] = zeros({1, 3, 1});
  const double exponential = std::exp(0.7);
  const double weight = run_attention(x, options, {.dtype = precision.dtype}).out.at(0, 0, 0);
  CHECK(weight == Approx(exponential / (exponential + 3)).epsilon(precision.tolerance));
  CHECK(weight == Approx(0.4016458).epsilon(2e-7));
  for (std::int64_t n = 0; n < 3; ++n) {
    x[kPastValues] = zeros({1, 1});
    x[kSlotValues] = zeros({1, 3, 1});
    x[kSlotValues].at(0, n, 0) = 1 / std::sqrt(3.0);
    const double slot_weight = run_attention(x, options, {.dtype = precision.dtype}).out.at(0, 0, 0);
    CHECK(slot_weight == Approx(1 / (exponential + 3)).epsilon(precision.tolerance));
    CHECK(slot_weight == Approx(0.1994514).epsilon(3e-7));
  }
}

TEST_CASE("T7: spans of everything are plain windowed softmax attention", "[attention][worked]") {
  AttentionOptions options = attention_options(70, {70, 70});
  options.ramp = 32;
  const bool query_spans = GENERATE(false, true);
  std::vector<Array64> x =
      attention_numbers("T7", options, {.block = 65, .depth = 4, .span = {1, 1}, .query_spans = query_spans});
  const AttentionTruth with_span = run_attention(x, options);
  const Array64 dout = constant(0.7, x[kContentQuery].shape);
  const std::vector<Array64> gradients = run_attention_backward(x, options, with_span, dout);
  for (const double dspan : gradients[kSpan].data) CHECK(dspan == 0);
  x[kSpan] = {};
  CHECK(compare_elements("out", std::array{with_span.out}, std::array{attention_truth(x, options).out}, 1e-14).empty());
  CHECK(run_attention(x, options).out.data == with_span.out.data);
}

/// S = 12, R = 4, z = 3: x = 7 (distance 8) is the end of the ramp, everything beyond is masked.
struct HugeScore {
  AttentionOptions options = plain_options(12);
  std::vector<Array64> x{kAttentionArguments};

  explicit HugeScore(std::int64_t distance) {
    options.ramp = 4;
    x = attention_numbers("huge score", options,
                          {.streams = 1, .block = 1, .depth = 2, .slots = 2, .positions = {}, .span = {0.25}});
    x[kContentQuery] = constant(1, {1, 1, 2});
    x[kPastKeys].at(12 - distance, 0) = 100;
    x[kPastKeys].at(12 - distance, 1) = 100;
  }
};

TEST_CASE("T20: a huge score outside the mask does nothing", "[attention][worked]") {
  const AttentionCall single{.dtype = DType::f32, .keep = GENERATE(false, true), .backend = &each_device()};
  const HugeScore huge(9), boundary(8);
  std::vector<Array64> calm = huge.x;
  calm[kPastKeys].at(3, 0) = calm[kPastKeys].at(3, 1) = 0;
  const AttentionTruth got = run_attention(huge.x, huge.options, single);
  const AttentionTruth wanted = run_attention(calm, huge.options, single);
  CHECK(got.out.data == wanted.out.data);
  CHECK(got.lse.data == wanted.lse.data);

  std::vector<Array64> ones = huge.x;
  for (double& value : ones[kPastValues].data) value = 1;
  for (double& value : ones[kSlotValues].data) value = 1;
  const AttentionTruth sum = run_attention(ones, huge.options, single);
  for (const double total : sum.out.data) CHECK(total == Approx(1).epsilon(1e-6));

  const Array64 dout = array({1, 1, 2}, {1, -0.5});
  const std::vector<Array64> gradients = run_attention_backward(huge.x, huge.options, got, dout, single);
  const std::vector<Array64> calm_gradients = run_attention_backward(calm, huge.options, wanted, dout, single);
  CHECK(gradients[kPastKeys].at(3, 0) == 0);
  CHECK(gradients[kPastKeys].at(3, 1) == 0);
  for (std::size_t i = 0; i < kPastValid; ++i) CHECK(gradients[i].data == calm_gradients[i].data);

  // At the end of the ramp the slot does take part in the span's gradient, with its exponent capped.
  const AttentionTruth at_end = run_attention(boundary.x, boundary.options, single);
  const double dspan = run_attention_backward(boundary.x, boundary.options, at_end, dout, single)[kSpan].at(0);
  CHECK(std::isfinite(dspan));
  CHECK(std::abs(dspan) > 1e6);
  CHECK(std::abs(dspan) < 12.0 / 4 * std::exp(18) * 100);
}

TEST_CASE("T22: persistent slots alone are a position-free function", "[attention][worked]") {
  const AttentionOptions slots_only = plain_options(0, 2);
  std::vector<Array64> x = attention_numbers("T22", slots_only, {.streams = 3, .block = 71, .depth = 5, .slots = 9});
  for (std::int64_t row = 0; row < 3 * 71; ++row)
    for (std::int64_t i = 0; i < 10; ++i)
      x[kContentQuery].data[static_cast<std::size_t>(row * 10 + i)] =
          x[kContentQuery].data[static_cast<std::size_t>(i)];
  const auto check_equal_rows = [](const Array64& out) {
    const double largest = std::abs(*std::ranges::max_element(out.data, {}, [](double v) { return std::abs(v); }));
    for (std::size_t k = 10; k < out.data.size(); ++k)
      if (std::abs(out.data[k] - out.data[k % 10]) > 1e-12 * largest) FAIL_CHECK("element " << k);
    CHECK(largest > 0.1);
  };
  check_equal_rows(run_attention(x, slots_only).out);

  // S = 1 without values: the previous position only takes its share of the weight.
  const AttentionOptions one = plain_options(1, 2);
  x[kKeys] = x[kContentQuery];
  x[kValues] = zeros(x[kKeys].shape);
  x[kPastKeys] = x[kPastValues] = zeros({3 * 2, 5});
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t i = 0; i < 5; ++i) x[kPastKeys].at(h * 3 + b, i) = x[kKeys].at(b, 0, h * 5 + i);
  check_equal_rows(run_attention(x, one).out);
}

TEST_CASE("attention: a query that sees nothing gives zero and no gradient", "[attention][worked]") {
  const Precision precision = GENERATE(kDouble, kSingle);
  AttentionOptions options = attention_options(4, {4, 4});
  options.ramp = GENERATE(0, 2);
  options.dropout = DropoutRule(GENERATE(0.0, 0.3));
  const std::vector<double> spans = options.ramp == 0 ? std::vector<double>{} : std::vector<double>{0, 0.3};
  const std::vector<Array64> x =
      attention_numbers("nothing", options, {.block = 3, .span = spans, .past_valid = {0, 2}});
  const AttentionCall call{.dtype = precision.dtype, .keep = GENERATE(false, true), .backend = &each_device()};
  const AttentionTruth result = run_attention(x, options, call);
  const Array64 dout = constant(1e3, x[kContentQuery].shape);
  const std::vector<Array64> gradients = run_attention_backward(x, options, result, dout, call);
  CHECK(result.lse.at(0, 0, 0) == -std::numeric_limits<double>::infinity());
  CHECK(result.lse.at(0, 1, 0) == -std::numeric_limits<double>::infinity());
  CHECK(std::isfinite(result.lse.at(0, 0, 1)));
  CHECK(std::isfinite(result.lse.at(1, 0, 0)));
  for (std::int64_t i = 0; i < 6; ++i) {
    CHECK(result.out.at(0, 0, i) == 0);
    CHECK(gradients[kContentQuery].at(0, 0, i) == 0);
  }
  for (const Array64& gradient : gradients)
    for (const double value : gradient.data) CHECK(std::isfinite(value));
}

}  // namespace
}  // namespace engram::harness::attention_worked_test
