/// The plain definitions against the numbers of [all-attention 12] (T1, T2, T3, T4, T7, T8, T20).

#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/reference/all_attention_layer.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/span_attention.hpp"
#include "tests/reference/span_rules.hpp"

namespace engram::reference::reference_test {
namespace {

void check_values(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    INFO("element " << k);
    CHECK(got[k] == Approx(expected[k]).margin(tolerance).epsilon(0));
  }
}

std::vector<double> weights_of(const Array64& weights, std::int64_t head, std::int64_t query) {
  std::vector<double> row;
  for (std::int64_t slot = 0; slot < weights.axis(3); ++slot) row.push_back(weights.at(0, head, query, slot));
  return row;
}

/// T2: one query that is zero, so that all scores are; values count their distance.
struct ZeroQuery {
  SpanAttentionInputs inputs;
  SpanAttentionOptions options;
  ZeroQuery() {
    inputs.content_query = zeros({1, 1, 1});
    inputs.past_keys = fill(1, {1, 8, 1});
    inputs.past_values = array({1, 8, 1}, {8, 7, 6, 5, 4, 3, 2, 1});
    inputs.keys = inputs.values = fill(2, {1, 1, 1});
    inputs.position_keys = fill(3, {8, 1});
    inputs.slot_keys = fill(4, {1, 4, 1});
    inputs.slot_values = zeros({1, 4, 1});
    inputs.span = array({1}, {0.25});
    options = all_attention_options(1, 1, 4, 8, 4);
  }
};

/// A window of six over four past positions and a block of three, two heads.
struct RandomCase {
  SpanAttentionInputs inputs;
  SpanAttentionOptions options;
  RandomCase(std::uint64_t seed, std::int64_t slots) {
    RandomArrays random(seed);
    inputs.content_query = random.array({2, 3, 6});
    inputs.past_keys = random.array({2, 4, 6});
    inputs.past_values = random.array({2, 4, 6});
    inputs.keys = random.array({2, 3, 6});
    inputs.values = random.array({2, 3, 6});
    inputs.position_keys = random.array({6, 3});
    inputs.slot_keys = random.array({2, slots, 3});
    inputs.slot_values = random.array({2, slots, 3});
    options = all_attention_options(6, 2, slots, 6, 2);
  }
};

TEST_CASE("T1: mask values", "[reference]") {
  const auto masks = [](double span, std::int64_t offset) {
    std::vector<double> values;
    for (std::int64_t distance = 1; distance <= 8; ++distance)
      values.push_back(span_mask(distance, span, 8, 4, offset));
    return values;
  };
  check_values(masks(0.25, 0), {1, 1, 1, 0.75, 0.5, 0.25, 0, 0}, 1e-15);
  check_values(masks(0.3, 0), {1, 1, 1, 0.85, 0.6, 0.35, 0.1, 0}, 1e-15);
  check_values(masks(0.25, 1), {1, 1, 0.75, 0.5, 0.25, 0, 0, 0}, 1e-15);
  CHECK(span_window({0.25}, 8, 4).size == 6);
  CHECK(span_window({0.3}, 8, 4).size == 7);
}

TEST_CASE("T2: a zero query gives weights that are the mask", "[reference]") {
  ZeroQuery zero;
  const SpanAttentionResult result = span_attention(zero.inputs, zero.options);
  check_values(weights_of(result.weights, 0, 0),
               {2 / 17., 2 / 17., 2 / 17., 3 / 34., 1 / 17., 1 / 34., 0, 0, 2 / 17., 2 / 17., 2 / 17., 2 / 17.}, 1e-15);
  CHECK(result.out.at(0, 0, 0) == Approx(26 / 17.).epsilon(1e-14));
  CHECK(result.lse.at(0, 0, 0) == Approx(std::log(8.5)).epsilon(1e-14));

  const auto span_gradient = [&zero](RampGradient rule) {
    zero.options.ramp_gradient = rule;
    return span_attention_gradients(zero.inputs, zero.options, constant(1, {1, 1, 1})).span.at(0);
  };
  CHECK(span_gradient(RampGradient::inclusive) == Approx(1180 / 289.).epsilon(1e-13));
  CHECK(span_gradient(RampGradient::right) == Approx(1080 / 289.).epsilon(1e-13));
  CHECK(span_gradient(RampGradient::open) == Approx(708 / 289.).epsilon(1e-13));
}

TEST_CASE("T3: one context slot among zero persistent keys", "[reference]") {
  SpanAttentionInputs inputs;
  inputs.content_query = constant(1, {1, 1, 1});
  inputs.past_keys = constant(0.7, {1, 1, 1});
  inputs.past_values = inputs.keys = inputs.values = constant(1, {1, 1, 1});
  inputs.position_keys = zeros({1, 1});
  inputs.slot_keys = inputs.slot_values = zeros({1, 3, 1});
  const SpanAttentionResult result = span_attention(inputs, all_attention_options(1, 1, 3, 1, 0));
  check_values(weights_of(result.weights, 0, 0), {0.4016458, 0.1994514, 0.1994514, 0.1994514}, 5e-8);
  check_values(
      weights_of(result.weights, 0, 0),
      {std::exp(0.7) / (std::exp(0.7) + 3), 1 / (std::exp(0.7) + 3), 1 / (std::exp(0.7) + 3), 1 / (std::exp(0.7) + 3)},
      1e-15);
}

TEST_CASE("T4: the golden layer and its gradients", "[reference]") {
  AttentionWeights weights;
  weights.query = fill(1, {4, 4});
  weights.key = fill(2, {4, 4});
  weights.value = fill(3, {4, 4});
  weights.out = fill(4, {4, 4});
  Array64 positions = fill(5, {6, 2});
  weights.slot_keys = fill(6, {2, 3, 2});
  weights.slot_values = fill(7, {2, 3, 2});
  weights.span = array({2}, {0.25, 0.6});
  weights.norm_gain = constant(1, {4});
  weights.norm_bias = zeros({4});
  const Array64 cache = fill(8, {1, 6, 4});
  Array64 h = fill(9, {1, 3, 4});
  const SpanAttentionOptions options = all_attention_options(4, 2, 3, 6, 2);

  const LayerResult layer = all_attention_layer(weights, {.keys = positions, .values = {}}, cache, h, options);
  check_values(weights_of(layer.weights, 0, 0),
               {0.15844880, 0.16800244, 0.13485020, 0.03459267, 0, 0, 0.17469630, 0.17501412, 0.15439547}, 1e-8);
  check_values(
      weights_of(layer.weights, 1, 2),
      {0.12166288, 0.13099296, 0.13426726, 0.10913466, 0.10230062, 0.03409036, 0.11316810, 0.12206683, 0.13231634},
      1e-8);
  check_values(layer.heads.data,
               {0.22500915, 0.04156929, 0.05081653, 0.12700017, 0.28571984, -0.06294842, 0.04856072, 0.01660495,
                0.23931741, -0.01639051, 0.05190418, 0.09965308},
               1e-8);
  check_values(layer.mapped.data,
               {-0.13712874, 0.13080321, -0.10936268, 0.07528471, -0.09692035, 0.06806717, -0.03134848, -0.00899270,
                -0.11149476, 0.10081587, -0.07848717, 0.04708887},
               1e-8);
  check_values(layer.output.data,
               {1.12927274, 0.84037059, -1.18251255, -0.78713078, -1.54044092, -0.14127734, 0.53049448, 1.15122378,
                1.04353916, 0.92587299, -0.74587321, -1.22353894},
               1e-8);

  const auto loss = [&] {
    const Array64 output = all_attention_layer(weights, {.keys = positions, .values = {}}, cache, h, options).output;
    double total = 0;
    for (std::size_t k = 0; k < output.data.size(); ++k)
      total += output.data[k] * std::cos(0.3 * static_cast<double>(k));
    return total;
  };
  CHECK(loss() == Approx(-0.46297957).margin(1e-8).epsilon(0));
  const auto gradient_norm = [&loss](Array64& x) { return norm(central_differences(x, loss)); };
  CHECK(gradient_norm(weights.query) == Approx(0.08770193).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(weights.key) == Approx(0.01388407).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(weights.value) == Approx(0.10199965).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(weights.out) == Approx(0.21497729).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(positions) == Approx(0.00770101).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(weights.slot_keys) == Approx(0.08260507).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(weights.slot_values) == Approx(0.32968518).margin(1e-8).epsilon(0));
  CHECK(gradient_norm(h) == Approx(0.87725288).margin(1e-8).epsilon(0));
  check_values(central_differences(weights.span, loss).data, {0.05839435, 0.04049675}, 1e-8);
}

TEST_CASE("T7: a full span without slots is windowed softmax attention", "[reference]") {
  RandomCase masked(7, 0), plain(7, 0);
  masked.inputs.span = constant(1, {2});
  const SpanAttentionResult with_span = span_attention(masked.inputs, masked.options);
  const SpanAttentionResult without = span_attention(plain.inputs, plain.options);
  check_values(with_span.out.data, without.out.data, 1e-14);
  check_values(with_span.weights.data, without.weights.data, 1e-14);

  // The same window once more, straight from the softmax formula.
  const SpanAttentionInputs& in = plain.inputs;
  for (std::int64_t slot = 0; slot < 6; ++slot) {
    double total = 0, own = 0;
    for (std::int64_t distance = 1; distance <= 6; ++distance) {
      double score = 0;
      for (std::int64_t i = 0; i < 3; ++i) {
        const double query = in.content_query.at(1, 2, 3 + i);
        const double key = distance <= 2 ? in.keys.at(1, 2 - distance, 3 + i) : in.past_keys.at(1, 6 - distance, 3 + i);
        score += query * (key + in.position_keys.at(distance - 1, i));
      }
      total += std::exp(score / std::sqrt(3.0));
      if (distance == slot + 1) own = std::exp(score / std::sqrt(3.0));
    }
    CHECK(without.weights.at(1, 1, 2, slot) == Approx(own / total).epsilon(1e-13));
  }
  const Array64 cotangent = RandomArrays(8).array({2, 3, 6});
  for (const double g : span_attention_gradients(masked.inputs, masked.options, cotangent).span.data) CHECK(g == 0);
}

TEST_CASE("T8: context and persistent passes merge by their log-sum-exps", "[reference]") {
  RandomCase joint(9, 5);
  joint.inputs.span = array({2}, {0.3, 0.7});
  RandomCase context = joint, persistent = joint;
  context.inputs.slot_keys = context.inputs.slot_values = {};
  persistent.options.max_distance = 0;
  const SpanAttentionResult whole = span_attention(joint.inputs, joint.options);
  const SpanAttentionResult c = span_attention(context.inputs, context.options);
  const SpanAttentionResult p = span_attention(persistent.inputs, persistent.options);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < 3; ++t)
      for (std::int64_t column = 0; column < 6; ++column) {
        const double wc = std::exp(c.lse.at(b, column / 3, t)), wp = std::exp(p.lse.at(b, column / 3, t));
        const double merged = (wc * c.out.at(b, t, column) + wp * p.out.at(b, t, column)) / (wc + wp);
        CHECK(whole.out.at(b, t, column) == Approx(merged).margin(1e-13).epsilon(0));
        CHECK(whole.lse.at(b, column / 3, t) == Approx(std::log(wc + wp)).margin(1e-13).epsilon(0));
      }
  RandomCase one_slot(10, 1);
  one_slot.options.max_distance = 0;
  const SpanAttentionResult only = span_attention(one_slot.inputs, one_slot.options);
  CHECK(only.out.at(1, 2, 4) == Approx(one_slot.inputs.slot_values.at(1, 0, 1)).epsilon(1e-14));
}

TEST_CASE("T20: a masked huge score changes nothing", "[reference]") {
  RandomCase huge(20, 3);
  huge.inputs.span = constant(0.1, {2});  // z = 0.6: x > 2.6 is masked, and past row 0 is at x = 3, 4 and 5
  RandomCase calm = huge;
  double square = 0;
  for (std::int64_t i = 0; i < 3; ++i) square += std::pow(huge.inputs.content_query.at(0, 2, i), 2);
  for (std::int64_t i = 0; i < 3; ++i)
    huge.inputs.past_keys.at(0, 0, i) = 200 * std::sqrt(3.0) * huge.inputs.content_query.at(0, 2, i) / square;
  const SpanAttentionResult a = span_attention(huge.inputs, huge.options);
  const SpanAttentionResult b = span_attention(calm.inputs, calm.options);
  check_values(a.weights.data, b.weights.data, 1e-14);
  check_values(a.out.data, b.out.data, 1e-14);
  for (std::int64_t t = 0; t < 3; ++t) {
    double total = 0;
    for (const double weight : weights_of(a.weights, 0, t)) total += weight;
    CHECK(total == Approx(1).epsilon(1e-14));
  }
  // The score really is huge: without a span its slot takes all the weight.
  huge.options.ramp = 0;
  CHECK(span_attention(huge.inputs, huge.options).weights.at(0, 0, 2, 5) == Approx(1).epsilon(1e-14));
  huge.options.ramp = 2;
  const SpanAttentionInputs gradients =
      span_attention_gradients(huge.inputs, huge.options, RandomArrays(21).array({2, 3, 6}));
  for (std::int64_t i = 0; i < 3; ++i) CHECK(gradients.past_keys.at(0, 0, i) == 0);
  for (const double g : gradients.content_query.data) CHECK(std::isfinite(g));
  for (const double g : gradients.span.data) CHECK(std::isfinite(g));
}

TEST_CASE("a boundary slot's exponent is capped at 18", "[reference]") {
  ZeroQuery far;
  far.inputs.content_query = constant(1, {1, 1, 1});
  far.inputs.position_keys = zeros({8, 1});
  far.inputs.past_keys = zeros({1, 8, 1});
  far.inputs.slot_keys = zeros({1, 4, 1});
  far.inputs.past_keys.at(0, 1, 0) = 200;  // distance 7, x = 6 = z + R: exactly at the end of the ramp
  const SpanAttentionResult result = span_attention(far.inputs, far.options);
  CHECK(result.out.at(0, 0, 0) == Approx(26 / 17.).epsilon(1e-14));
  // Against T2 only the seventh slot's exponential differs: e^18 instead of 1, times S/R (7 - 26/17) / 8.5.
  const double gradient = span_attention_gradients(far.inputs, far.options, constant(1, {1, 1, 1})).span.at(0);
  CHECK(gradient == Approx(1180 / 289. + 2 * (std::exp(18.0) - 1) * (7 - 26 / 17.) / 8.5).epsilon(1e-12));
}

}  // namespace
}  // namespace engram::reference::reference_test
