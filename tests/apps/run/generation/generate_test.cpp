/// Sampling, and a stream through key and value rings against the evaluation of the same tokens in one block.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "apps/run/generation/token_sampler.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/all_attention.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/model_options.hpp"

namespace engram::generate_test {
namespace {

constexpr std::int64_t kSymbols = 11;

AllAttentionOptions small_model(MemoryMode mode, Pad pad) {
  AllAttentionOptions options = harness::model_options(
      mode, {.vocabulary = kSymbols, .layers = 2, .width = 12, .inner = 16, .slots = 5, .max_span = 40, .ramp = 6});
  options.span_init = 0.4;
  options.pad = pad;
  return options;
}

struct PlacedModel {
  PlacedModel(const AllAttentionOptions& options, DType dtype) : model(options), dtype_(dtype) {
    collect(model, store);
    store.place(runtime.backend(), dtype, 7);
    model.refresh(runtime.backend());
  }
  Runtime runtime;
  AllAttentionModel model;
  ParameterStore store;
  DType dtype_;
};

std::vector<double> log_probabilities(std::vector<double> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  for (double& logit : logits) logit -= largest + std::log(sum);
  return logits;
}

/// Log-probabilities of the token after each of `tokens`, all computed as one block over hidden caches.
std::vector<std::vector<double>> block_evaluation(PlacedModel& placed, const std::vector<std::int32_t>& tokens) {
  Runtime& runtime = placed.runtime;
  Step& step = runtime.step();
  const auto length = static_cast<std::int64_t>(tokens.size());
  std::vector<std::vector<double>> rows;
  {
    ModelPast past = placed.model.training_past(runtime.backend(), runtime.memory(), 1, placed.dtype_);
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    const Tensor input = step.empty({1, length}, DType::i32);
    runtime.backend().copy(input.raw(), tokens.data(), input.bytes(), CopyKind::host_to_device);
    const Tensor logits = placed.model.forward(tape, input, past).value();
    dispatch_float(logits.dtype(), "test", [&]<class T>() {
      const T* values = logits.data<T>();
      for (std::int64_t t = 0; t < length; ++t, values += kSymbols)
        rows.push_back(log_probabilities({values, values + kSymbols}));
    });
  }
  runtime.arena().end_step();
  return rows;
}

double largest_difference(MemoryMode mode, Pad pad, DType dtype) {
  PlacedModel placed(small_model(mode, pad), dtype);
  TokenStream stream({placed.model, placed.runtime, dtype});
  TokenSampler sampler({.seed = 3});
  std::vector<std::int32_t> tokens{1, 4, 2, 9, 0, 3, 3};
  std::vector<std::vector<double>> generated;
  std::span<const double> logits = stream.append(tokens);
  const std::size_t prompt = tokens.size();
  for (std::uint64_t position = 0; position < 120; ++position) {
    generated.push_back(log_probabilities({logits.begin(), logits.end()}));
    tokens.push_back(sampler.pick(logits, position));
    logits = stream.append(std::array{tokens.back()});
  }
  const auto evaluated = block_evaluation(placed, tokens);
  double worst = 0;
  for (std::size_t i = 0; i < generated.size(); ++i)
    for (std::size_t id = 0; id < kSymbols; ++id)
      worst = std::max(worst, std::abs(generated[i][id] - evaluated[prompt - 1 + i][id]));
  return worst;
}

}  // namespace

TEST_CASE("generating through rings is evaluating the same text in one block") {
  for (const MemoryMode mode : {MemoryMode::all, MemoryMode::none, MemoryMode::transformer}) {
    for (const Pad pad : {Pad::attend_zero, Pad::mask}) {
      INFO(name_of(mode) << " " << name_of(pad));
      CHECK(largest_difference(mode, pad, DType::f64) < 1e-12);
      CHECK(largest_difference(mode, pad, DType::f32) < 1e-5);
    }
  }
}

TEST_CASE("a long prompt may be cut into blocks anywhere") {
  PlacedModel placed(small_model(MemoryMode::all, Pad::attend_zero), DType::f64);
  std::vector<std::int32_t> tokens(600);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>((i * i + i / 3) % kSymbols);
  TokenStream whole({placed.model, placed.runtime, DType::f64});
  const std::span<const double> at_once = whole.append(tokens);
  TokenStream pieces({placed.model, placed.runtime, DType::f64});
  pieces.append(std::span(tokens).first(1));
  pieces.append(std::span(tokens).subspan(1, 36));
  const std::span<const double> in_pieces = pieces.append(std::span(tokens).subspan(37));
  for (std::size_t id = 0; id < kSymbols; ++id) CHECK(at_once[id] == Approx(in_pieces[id]).margin(1e-12));
  CHECK_THROWS_AS(pieces.append({}), Error);
}

TEST_CASE("temperature 0 takes the likeliest token, of equal ones the lowest id") {
  TokenSampler sampler({.temperature = 0});
  CHECK(sampler.pick(std::array{0.5, 2.0, 2.0, 1.0}, 0) == 1);
  CHECK(sampler.pick(std::array{-3.0, -3.0}, 9) == 0);
}

TEST_CASE("samples follow the softmax of the logits over the temperature") {
  const std::array logits{std::log(0.1), std::log(0.6), std::log(0.3)};
  constexpr int kDraws = 40000;
  const auto shares = [&](const SamplingOptions& options) {
    TokenSampler sampler(options);
    std::array<double, 3> share{};
    for (std::uint64_t i = 0; i < kDraws; ++i) share[static_cast<std::size_t>(sampler.pick(logits, i))] += 1.0 / kDraws;
    return share;
  };
  const auto check = [](const std::array<double, 3>& got, const std::array<double, 3>& want) {
    for (std::size_t id = 0; id < 3; ++id)
      CHECK(std::abs(got[id] - want[id]) <= 4 * std::sqrt(want[id] * (1 - want[id]) / kDraws) + 1e-9);
  };
  check(shares({}), {0.1, 0.6, 0.3});
  check(shares({.temperature = 0.5}), {0.01 / 0.46, 0.36 / 0.46, 0.09 / 0.46});
  check(shares({.top_k = 2}), {0, 0.6 / 0.9, 0.3 / 0.9});
  check(shares({.top_k = 1}), {0, 1, 0});
  check(shares({.top_p = 0.5}), {0, 1, 0});
  check(shares({.top_p = 0.7}), {0, 0.6 / 0.9, 0.3 / 0.9});
  check(shares({.top_p = 0.95}), {0.1, 0.6, 0.3});
  // Of the two likeliest, 0.6 / 0.9 are already more than 0.65.
  check(shares({.top_k = 2, .top_p = 0.65}), {0, 1, 0});
}

TEST_CASE("a seed repeats its samples, another seed does not") {
  std::array<double, 50> logits{};
  const auto draw = [&](std::uint64_t seed) {
    TokenSampler sampler({.seed = seed});
    std::vector<std::int32_t> ids;
    for (std::uint64_t i = 0; i < 40; ++i) ids.push_back(sampler.pick(logits, i));
    return ids;
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  CHECK(draw(1) != draw(1 + (std::uint64_t{1} << 32)));
}

TEST_CASE("sampling options out of range and logits that are no numbers are refused") {
  CHECK_THROWS_AS(TokenSampler({.temperature = -0.1}), UsageError);
  CHECK_THROWS_AS(TokenSampler({.temperature = std::nan("")}), UsageError);
  CHECK_THROWS_AS(TokenSampler({.top_k = -1}), UsageError);
  CHECK_THROWS_AS(TokenSampler({.top_p = 0}), UsageError);
  CHECK_THROWS_AS(TokenSampler({.top_p = 1.5}), UsageError);
  TokenSampler sampler({});
  CHECK_THROWS_AS(sampler.pick(std::array{0.0, std::numeric_limits<double>::quiet_NaN()}, 0), Error);
}

}  // namespace engram::generate_test
