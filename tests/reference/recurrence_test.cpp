/// The definitions of recurrent layers in whole language models, against losses that two independent programs computed
/// ([key-value-predict 8.1]).

#include "tests/reference/recurrence.hpp"

#include "tests/harness/catch.hpp"

namespace engram::reference::recurrence_test {
namespace {

constexpr std::int64_t kVocabulary = 7, kWidth = 3, kUnits = 6, kSteps = 5;
constexpr std::int64_t kIds[] = {1, 4, 2, 6, 3}, kTargets[] = {4, 2, 6, 3, 5};

/// Flat element i is 0.5 sin(1.3 i + 0.7 number + 0.2).
Array64 numbered(int number, std::vector<std::int64_t> shape) {
  Array64 x = zeros(std::move(shape));
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = 0.5 * std::sin(1.3 * static_cast<double>(i) + 0.7 * number + 0.2);
  return x;
}

/// Blocks of matrices [kUnits, width] one below the other.
Array64 stacked(std::initializer_list<int> numbers, std::int64_t width) {
  Array64 all = zeros({static_cast<std::int64_t>(numbers.size()) * kUnits, width});
  std::int64_t row = 0;
  for (const int number : numbers) {
    const Array64 one = numbered(number, {kUnits, width});
    for (std::int64_t r = 0; r < kUnits; ++r, ++row)
      for (std::int64_t i = 0; i < width; ++i) all.at(row, i) = one.at(r, i);
  }
  return all;
}

/// weight times the embeddings of the ids, plus the bias of its first rows: [1, kSteps, rows].
Array64 projected(const Array64& weight, const Array64& bias) {
  const Array64 embedding = numbered(1, {kVocabulary, kWidth});
  Array64 y = zeros({1, kSteps, weight.axis(0)});
  for (std::int64_t t = 0; t < kSteps; ++t)
    for (std::int64_t row = 0; row < weight.axis(0); ++row) {
      double sum = row < bias.axis(0) ? bias.at(row) : 0;
      for (std::int64_t i = 0; i < kWidth; ++i) sum += weight.at(row, i) * embedding.at(kIds[t], i);
      y.at(0, t, row) = sum;
    }
  return y;
}

RecurrencePast past(std::int64_t reset) {
  RecurrencePast nothing{.hidden = {}, .cells = {}, .preceding = zeros({1, kSteps})};
  for (std::int64_t t = 0; t < kSteps; ++t)
    nothing.preceding.at(0, t) = static_cast<double>(reset > 0 && t >= reset ? t - reset : t);
  return nothing;
}

double mean_loss(const Array64& hidden) {
  const Array64 weight = numbered(20, {kVocabulary, kUnits}), bias = numbered(21, {kVocabulary});
  double total = 0;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    double sum = 0, target = 0;
    for (std::int64_t v = 0; v < kVocabulary; ++v) {
      double logit = bias.at(v);
      for (std::int64_t i = 0; i < kUnits; ++i) logit += weight.at(v, i) * hidden.at(0, t, i);
      sum += std::exp(logit);
      if (v == kTargets[t]) target = logit;
    }
    total += std::log(sum) - target;
  }
  return total / kSteps;
}

/// Without a reset, and with one at step 3.
template <class Layer>
void check(const Layer& layer, double wanted, double wanted_with_reset) {
  CHECK(mean_loss(layer(past(0))) == Approx(wanted).margin(1e-9));
  CHECK(mean_loss(layer(past(3))) == Approx(wanted_with_reset).margin(1e-9));
}

TEST_CASE("recurrent layers in language models have known losses") {
  const Array64 bias = numbered(4, {kUnits});
  SECTION("plain") {
    const Array64 inputs = projected(numbered(2, {kUnits, kWidth}), bias), weight = numbered(3, {kUnits, kUnits});
    check([&](const RecurrencePast& before) { return elman(inputs, weight, before); }, 2.5638634762, 2.5986089245);
  }
  SECTION("lstm") {
    Array64 biases = numbered(4, {4 * kUnits});
    for (std::int64_t i = 0; i < kUnits; ++i) biases.at(kUnits + i) = 1;  // of the forget gate
    const Array64 inputs = projected(numbered(2, {4 * kUnits, kWidth}), biases);
    const Array64 weight = numbered(3, {4 * kUnits, kUnits});
    check([&](const RecurrencePast& before) { return lstm(inputs, weight, before).hidden; }, 1.9320577591,
          1.9565603447);
  }
  SECTION("fofe of order 3") {
    const Array64 inputs = projected(numbered(2, {kUnits, kWidth}), bias), weight = stacked({5, 6, 7}, kUnits);
    check([&](const RecurrencePast& before) { return hornn_fofe(inputs, weight, before, 3, 0.6); }, 2.4511937440,
          2.2896919516);
  }
  SECTION("gated of order 3") {
    const Array64 inputs = projected(stacked({2, 9, 10, 11}, kWidth), bias);
    const Array64 weight = stacked({5, 6, 7, 13, 14, 15}, kUnits);
    check([&](const RecurrencePast& before) { return hornn_gated(inputs, weight, before, 3); }, 2.4537414272,
          2.2852670210);
  }
}

}  // namespace
}  // namespace engram::reference::recurrence_test
