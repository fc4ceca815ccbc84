/// T14 of [all-attention 12]: every derivative of a whole small model against central differences, with caches that
/// hold a block before; and what the truncated past and the span penalty contribute.

#include <cmath>
#include <map>

#include "tests/harness/catch.hpp"
#include "tests/nn/model_options.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::model_gradient_test {
namespace {

struct GradientBench : PlacedModel {
  Tokens tokens, targets;
  std::vector<reference::Array64> caches;  // states of each layer before the block
  double lambda = 0.01;

  explicit GradientBench(const AllAttentionOptions& options) : PlacedModel(options) {
    reference::RandomArrays random(3);
    // Gains and biases of 1 and 0 would hide mistakes.
    for (const auto& [name, parameter] : store.parameters())
      if (name.find("norm") != std::string::npos) set(name, random.array({options.width}));
    for (std::int64_t layer = 0; layer < options.layers && options.span == SpanKind::adaptive; ++layer)
      set(text("layers.", layer, ".attention.span"), reference::array({2}, {0.2171, 0.5337}));
    if (options.span == SpanKind::dynamic) set_spans(31);
    const std::int64_t vocabulary = options.vocabulary;
    ModelPast past = hidden(2);
    logits(random_tokens(2 * 9, vocabulary, 21), 2, past);
    for (const auto& layer : past) caches.push_back(read(dynamic_cast<HiddenCache&>(*layer).states()));
    tokens = random_tokens(2 * 6, vocabulary, 22);
    targets = random_tokens(2 * 6, vocabulary, 23);
  }

  /// The loss of the block after the same past; adds to the gradients.
  double loss() {
    ModelPast past = hidden(2);
    for (std::size_t layer = 0; layer < past.size(); ++layer) {
      auto& cache = dynamic_cast<HiddenCache&>(*past[layer]);
      cache.restore(caches[layer].axis(1), 9);
      write(cache.states(), caches[layer]);
    }
    return train(tokens, targets, 2, past, lambda);
  }
};

AllAttentionOptions options_of(MemoryMode mode) {
  return model_options(mode,
                       {.vocabulary = 5, .layers = 2, .width = 6, .inner = 7, .slots = 3, .max_span = 12, .ramp = 4});
}

struct Variant {
  MemoryMode mode;
  SpanKind span = SpanKind::adaptive;
  PositionValues values = PositionValues::none;
};

TEST_CASE("T14: gradients of all parameters of a whole model equal central differences", "[night]") {
  std::vector<Variant> variants;
  for (const MemoryMode mode : kMemoryModes) variants.push_back({mode});
  variants.push_back({MemoryMode::all, SpanKind::adaptive, PositionValues::own});
  variants.push_back({MemoryMode::all, SpanKind::fixed, PositionValues::shared});
  variants.push_back({MemoryMode::all, SpanKind::dynamic, PositionValues::shared});
  variants.push_back({MemoryMode::head_split, SpanKind::dynamic, PositionValues::none});
  for (const auto& [mode, span, values] : variants) {
    for (const double dropout : {0.0, 0.3}) {
      AllAttentionOptions options = options_of(mode);
      options.span = span;
      options.position_values = values;
      options.dropout = dropout;
      options.embedding_dropout = dropout / 2;
      GradientBench bench(options);
      bench.store.zero_gradients(bench.step);
      bench.loss();
      std::map<std::string, reference::Array64> gradients;  // the calls below add to those of the parameters
      for (const auto& [name, parameter] : bench.store.parameters()) gradients[name] = bench.gradient(name);
      bench.differentiates = false;
      for (const auto& entry : bench.store.parameters()) {
        const std::string& name = entry.first;  // clang 14 captures no structured bindings
        CAPTURE(name_of(mode), name_of(span), name_of(values), dropout, name);
        const reference::Array64& analytic = gradients[name];
        reference::Array64 value = bench.value(name);
        const reference::Array64 numeric = reference::central_differences(
            value,
            [&] {
              bench.set(name, value);
              return bench.loss();
            },
            1e-5);
        bench.set(name, value);
        const double limit = name.find(".span") != std::string::npos ? 1e-6 : 1e-7;
        CHECK(reference::norm(numeric) > 1e-4);
        CHECK(reference::distance_between(analytic, numeric) < limit * std::max(0.05, reference::norm(numeric)));
      }
    }
  }
}

TEST_CASE("the span penalty is lambda S times the mean of zeta, in loss and gradient") {
  AllAttentionOptions options;
  options.vocabulary = 2;
  options.layers = 36;
  options.width = 8;
  options.heads = 8;
  options.slots = 1;
  options.max_span = 8192;
  options.span_init = 1;
  PlacedModel placed(options);
  placed.step.begin({});
  Tape tape(placed.step);
  const ModelTrace trace = placed.trace(tape);
  const Variable penalty = placed.model.penalty(trace, 1e-7, 0.5);
  CHECK(placed.read(penalty.value()).data[0] == Approx(0.0294912 / 2).epsilon(1e-12));
  tape.backward({penalty});
  for (const double gradient : placed.gradient("layers.17.attention.span").data)
    CHECK(gradient == Approx(1.024e-4 / 2).epsilon(1e-12));
  CHECK_FALSE(placed.model.penalty(trace, 0));
}

TEST_CASE("fixed spans have neither parameter nor penalty") {
  AllAttentionOptions options = options_of(MemoryMode::all);
  options.span = SpanKind::fixed;
  PlacedModel placed(options);
  CHECK(placed.store.find("layers.0.attention.span") == nullptr);
  Tape tape(placed.step);
  CHECK_FALSE(placed.model.penalty(placed.trace(tape), 1));
  CHECK(placed.model.span(0).reach() == std::vector<std::int64_t>{12, 12});
}

}  // namespace
}  // namespace engram::harness::model_gradient_test
