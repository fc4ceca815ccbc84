/// Every kind of both ends against the executable definition: vectors, losses, probabilities, and gradients against
/// central differences of the definition, on every device. T9 (b), (c) of [transformer-xl 12] are among them.

#include <cmath>

#include "autograd/functions/add.hpp"
#include "autograd/functions/slice.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/token_variants.hpp"

namespace engram::harness::token_variants_test {
namespace {

using reference::Array64;

// Every cluster is met as an input and as a target, the latter in no order of theirs; some words twice.
const std::vector<std::int32_t> kInputs{16, 0, 4, 5, 12, 10, 11, 3, 13, 9, 1, 16},
    kTargets{5, 16, 1, 10, 13, 4, 0, 11, 8, 9, 2, 5};
constexpr std::int64_t kStreams = 2, kRows = 12;

std::vector<double> state_of(const Array64& states, std::size_t row) {
  const auto width = static_cast<std::size_t>(states.axis(-1));
  const auto begin = states.data.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

TEST_CASE("every kind of both ends equals its definition, in the order of the positions", "[tokens]") {
  for (const auto& [name, options] : token_variants()) {
    CAPTURE(name, options.width, options.embedding_width, options.divisor);
    TokenBench bench(options, *available_backends().front());
    const Values values = random_values(bench.store, 11);
    bench.set(values);
    const reference::AdaptiveTokens defined = definition_of(options, values);
    const Array64 states = reference::RandomArrays(4).array({kStreams, kRows / kStreams, options.width});
    for (const bool padded : {false, true}) {
      bench.step.begin({});
      Tape tape(bench.step, Tape::Mode::inference);
      const TokenBatch block = bench.batch(kInputs, kTargets, kStreams, padded);
      const Array64 vectors = to_host(bench.backend, bench.tokens().embed(tape, block).value());
      CHECK(vectors.shape == states.shape);
      const Variable hidden = tape.constant(bench.tensor(states));
      const std::vector<double> losses = bench.row_losses(bench.tokens().losses(hidden, block, 0.25), kRows);
      const std::vector<double> all = bench.tokens().log_probabilities(hidden);
      REQUIRE(all.size() == kRows * 17);
      for (std::size_t row = 0; row < kRows; ++row) {
        const std::vector<double> vector = defined.embedding(kInputs[row]), got = state_of(vectors, row);
        REQUIRE(vector.size() == got.size());
        for (std::size_t i = 0; i < vector.size(); ++i) CHECK(got[i] == Approx(vector[i]).margin(1e-13));
        const std::vector<double> expected = defined.log_probabilities(state_of(states, row));
        CHECK(losses[row] == Approx(-expected[static_cast<std::size_t>(kTargets[row])]).margin(1e-12));
        double sum = 0;
        for (std::size_t word = 0; word < 17; ++word) {
          CHECK(all[row * 17 + word] == Approx(expected[word]).margin(1e-12));
          sum += std::exp(all[row * 17 + word]);
        }
        CHECK(sum == Approx(1).epsilon(1e-13));
      }
    }
  }
}

/// The sum of the losses after states that the inputs' vectors are part of: both uses of what is tied have a gradient.
double defined_loss(const TokenIoOptions& options, const Values& values, const Array64& states) {
  const reference::AdaptiveTokens defined = definition_of(options, values);
  double sum = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<double> state = state_of(states, row);
    const std::vector<double> vector = defined.embedding(kInputs[row]);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += vector[i];
    sum -= 0.25 * defined.log_probabilities(state)[static_cast<std::size_t>(kTargets[row])];
  }
  return sum;
}

double add_gradients(TokenBench& bench, const Array64& states, bool padded) {
  bench.store.zero_gradients(bench.step);
  bench.step.begin({});
  Tape tape(bench.step);
  const TokenBatch block = bench.batch(kInputs, kTargets, kStreams, padded);
  const Variable vectors = bench.tokens().embed(tape, block);
  std::vector<Variable> losses;
  double total = 0;
  for (LossPart& part : bench.tokens().losses(add(vectors, tape.constant(bench.tensor(states))), block, 0.25)) {
    total += to_host(bench.backend, part.loss.value()).data[0];
    losses.push_back(std::move(part.loss));
  }
  tape.backward(losses);
  return total;
}

TEST_CASE("gradients of every kind of both ends equal central differences of the definition", "[tokens][night]") {
  for (const auto& [name, options] : token_variants()) {
    CAPTURE(name, options.width, options.embedding_width, options.divisor);
    const Array64 states = reference::RandomArrays(4).array({kStreams, kRows / kStreams, options.width});
    Values values, numeric;
    for (const auto& backend : available_backends()) {
      for (const DType dtype : {DType::f64, DType::f32}) {
        const bool exact = dtype == DType::f64;
        CAPTURE(name_of(backend->device().kind), name_of(dtype));
        TokenBench bench(options, *backend, dtype);
        if (values.empty()) {
          // Vectors come into the states times sqrt(d): small ones keep the differences' curvature small.
          values = random_values(bench.store, 11, 0.3);
          for (auto& [parameter, value] : values)
            numeric[parameter] = reference::central_differences(
                value, [&, &changed = options] { return defined_loss(changed, values, states); }, 1e-5);
        }
        bench.set(values);
        for (const bool padded : {false, true}) {
          CHECK(add_gradients(bench, states, padded) ==
                Approx(defined_loss(options, values, states)).epsilon(exact ? 1e-12 : 1e-5));
          for (const auto& [parameter, expected] : numeric) {
            CAPTURE(padded, parameter);
            CHECK(reference::norm(expected) > 1e-3);
            const Array64 got = to_host(*backend, bench.store.find(parameter)->gradient());
            CHECK(reference::distance_between(got, expected) < (exact ? 1e-8 : 1e-5) * reference::norm(expected));
          }
        }
      }
    }
  }
}

TEST_CASE("losses of the last positions alone are those of the whole block there", "[tokens]") {
  constexpr std::int64_t kLength = kRows / kStreams, kScored = 4;
  std::vector<std::int32_t> scored;
  for (std::int64_t row = 0; row < kRows; ++row)
    if (row % kLength >= kLength - kScored) scored.push_back(kTargets[static_cast<std::size_t>(row)]);
  REQUIRE(scored.size() == kStreams * kScored);
  for (const auto& [name, options] : token_variants()) {
    CAPTURE(name, options.width, options.embedding_width, options.divisor);
    TokenBench bench(options, *available_backends().front());
    bench.set(random_values(bench.store, 11));
    Tape tape(bench.step, Tape::Mode::inference);
    const Variable hidden =
        tape.constant(bench.tensor(reference::RandomArrays(4).array({kStreams, kLength, options.width})));
    const std::vector<double> all =
        bench.row_losses(bench.tokens().losses(hidden, bench.batch(kInputs, kTargets, kStreams), 1), kRows);
    for (const bool padded : {false, true}) {
      const TokenBatch block = bench.batch(kInputs, scored, kStreams, padded);
      CHECK(bench.tokens().embed(tape, block).shape() == hidden.shape());
      const std::vector<double> part = bench.row_losses(
          bench.tokens().losses(slice(hidden, 1, kLength - kScored, kLength), block, 1), scored.size());
      for (std::int64_t stream = 0; stream < kStreams; ++stream)
        for (std::int64_t i = 0; i < kScored; ++i)
          CHECK(part[static_cast<std::size_t>(stream * kScored + i)] ==
                Approx(all[static_cast<std::size_t>((stream + 1) * kLength - kScored + i)]).epsilon(1e-14));
      CHECK_THROWS(bench.tokens().losses(hidden, block, 1));  // more states than targets
    }
  }
}

}  // namespace
}  // namespace engram::harness::token_variants_test
