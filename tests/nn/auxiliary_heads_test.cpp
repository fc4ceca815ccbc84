/// Losses of intermediate layers and of the token after the next, against their definition and central differences:
/// [transformer-xl 4.5].

#include "nn/layers/auxiliary_heads.hpp"

#include <cmath>
#include <map>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::auxiliary_heads_test {
namespace {

constexpr std::int64_t kStreams = 2, kBlock = 4;
constexpr double kRowWeight = 0.25;

TransformerXlOptions auxiliary_model(bool intermediate, double second) {
  TransformerXlOptions options = small_xl(PositionKind::absolute_learned);
  options.layers = 3;
  options.intermediate_losses = intermediate;
  options.second_target = second;
  return options;
}

struct AuxiliaryBench : PlacedXl {
  Ids tokens, targets;

  explicit AuxiliaryBench(const TransformerXlOptions& options, DType type = DType::f64,
                          Backend& device = *available_backends().front())
      : PlacedXl(options, type, device) {
    spread(5);
    tokens = random_ids(kStreams * kBlock, options.vocabulary, 31);
    // Targets are the next tokens, as in a text; the last of each stream is beyond the block.
    const Ids beyond = random_ids(kStreams, options.vocabulary, 32);
    for (std::int64_t b = 0; b < kStreams; ++b)
      for (std::int64_t t = 1; t <= kBlock; ++t)
        targets.push_back(t < kBlock ? tokens[std::size_t(b * kBlock + t)] : beyond[std::size_t(b)]);
  }

  /// The sum of all auxiliary losses; adds to the gradients. `context`: leading positions without targets.
  double loss(double progress, std::int64_t context = 0) {
    ModelPast past = memory(kStreams);
    step.begin({});
    Tape tape(step);
    Ids wanted;
    for (std::int64_t b = 0; b < kStreams; ++b)
      for (std::int64_t t = context; t < kBlock; ++t) wanted.push_back(targets[std::size_t(b * kBlock + t)]);
    TokenBatch block = batch(tokens, wanted, kStreams);
    block.context = context;
    ModelTrace trace(step.objects());
    trace.keep_states = true;
    const Variable hidden = LanguageModel::scored(model.hidden(tape, block, past, &trace), block);
    double total = 0;
    std::pmr::vector<Variable> losses = model.auxiliary_losses(trace, hidden, block, kRowWeight, progress);
    CHECK(std::ssize(losses) == model.auxiliary_count(progress));
    for (const Variable& one : losses) total += to_host(backend, one.value()).data[0];
    if (differentiates && !losses.empty()) tape.backward(losses);
    return total;
  }

  /// -ln softmax(weight state + bias)[target].
  double classified(const std::string& head, const std::vector<double>& state, std::int64_t target) {
    const reference::Array64 weight = value(head + ".weight"), bias = value(head + ".bias");
    double sum = 0, wanted = 0;
    for (std::int64_t word = 0; word < bias.count(); ++word) {
      double logit = bias.data[std::size_t(word)];
      for (std::size_t i = 0; i < state.size(); ++i) logit += weight.at(word, std::int64_t(i)) * state[i];
      sum += std::exp(logit);
      if (word == target) wanted = logit;
    }
    return std::log(sum) - wanted;
  }

  /// What loss() must come to: of each layer the definition's model that ends there.
  double defined(double progress, std::int64_t context = 0) {
    const TransformerXlOptions& options = model.options();
    const std::int64_t layers = options.layers;
    double total = 0;
    for (std::int64_t l = 1; l <= layers; ++l) {
      const bool last = l == layers;
      if (!last && (!options.intermediate_losses || !(double(l) > 2 * double(layers) * progress))) continue;
      reference::TransformerXl part = definition();
      part.layers.resize(std::size_t(l));
      const std::string number = std::to_string(last && !options.intermediate_losses ? 0 : l - 1);
      for (std::int64_t b = 0; b < kStreams; ++b) {
        const auto begin = tokens.begin() + b * kBlock;
        reference::XlState state;
        const reference::Array64 hidden = reference::xl_hidden(part, Ids(begin, begin + kBlock), state);
        for (std::int64_t t = context; t < kBlock; ++t) {
          std::vector<double> row;
          for (std::int64_t i = 0; i < options.width; ++i) row.push_back(hidden.at(t, i));
          const auto at = std::size_t(b * kBlock + t);
          if (!last) total += kRowWeight * classified("auxiliary.next." + number, row, targets[at]);
          if (options.second_target > 0 && t + 1 < kBlock)
            total +=
                kRowWeight * options.second_target * classified("auxiliary.second." + number, row, targets[at + 1]);
        }
      }
    }
    return total;
  }
};

}  // namespace

TEST_CASE("auxiliary losses: layer l of n predicts until l / 2n of the training", "[auxiliary]") {
  const AuxiliaryHeads heads({.vocabulary = 5, .width = 4, .layers = 4, .intermediate = true, .second_target = 0.5});
  CHECK(heads.most() == 3 + 4);
  CHECK(heads.first_layer(0) == 0);
  CHECK(heads.first_layer(0.1249) == 0);
  CHECK(heads.first_layer(0.125) == 1);
  CHECK(heads.first_layer(0.25) == 2);
  CHECK(heads.first_layer(0.375) == 3);
  CHECK(heads.first_layer(0.99) == 3);
  CHECK(heads.count(0.25) == 1 + 2);
  CHECK(heads.count(0.5) == 0 + 1);
  const AuxiliaryHeads second({.vocabulary = 5, .width = 4, .layers = 4, .second_target = 0.5});
  CHECK(second.most() == 1);
  CHECK(second.count(0.9) == 1);
  const AuxiliaryHeads next({.vocabulary = 5, .width = 4, .layers = 4, .intermediate = true});
  CHECK(next.most() == 3);
  CHECK(next.count(0.6) == 0);
}

TEST_CASE("auxiliary losses equal their definition, at every stage of the training and on every device",
          "[auxiliary]") {
  for (const auto& device : available_backends())
    for (const bool intermediate : {true, false})
      for (const double second : {0.5, 0.0}) {
        if (!intermediate && second == 0) continue;
        AuxiliaryBench exact(auxiliary_model(intermediate, second)),
            bench(auxiliary_model(intermediate, second), DType::f32, *device);
        for (const double progress : {0.0, 0.2, 0.4, 0.7})
          for (const std::int64_t context : {0, 2, 3}) {
            CAPTURE(intermediate, second, progress, context);
            const double wanted = exact.defined(progress, context);
            CHECK(exact.loss(progress, context) == Approx(wanted).margin(1e-12).epsilon(1e-12));
            CHECK(bench.loss(progress, context) == Approx(wanted).margin(2e-5));
          }
      }
}

TEST_CASE("auxiliary losses: gradients of all parameters equal central differences", "[auxiliary]") {
  AuxiliaryBench bench(auxiliary_model(true, 0.5));
  for (const double progress : {0.0, 0.2}) {
    CAPTURE(progress);
    bench.store.zero_gradients(bench.step);
    bench.differentiates = true;
    bench.loss(progress);
    std::map<std::string, reference::Array64> analytic;
    for (const auto& [name, parameter] : bench.store.parameters()) analytic[name] = bench.gradient(name);
    bench.differentiates = false;
    for (const auto& [name, gradient] : analytic) {
      CAPTURE(name);
      reference::Array64 value = bench.value(name);
      const reference::Array64 numeric = reference::central_differences(
          value,
          [&, &set = name] {
            bench.set(set, value.data);
            return bench.loss(progress);
          },
          1e-5);
      bench.set(name, value.data);
      // The first layer predicts no more, and the model's own output has no part in these losses.
      const bool idle = name == "output.bias" ||
                        (progress > 0 && name.find("auxiliary") == 0 && name.find(".0.") != std::string::npos);
      CHECK((reference::norm(numeric) > 1e-5) == !idle);
      CHECK(reference::distance_between(gradient, numeric) < 1e-7 * std::max(0.05, reference::norm(numeric)));
    }
  }
}

TEST_CASE("auxiliary losses: what cannot be is refused", "[auxiliary]") {
  const auto refused = [](const TransformerXlOptions& options, const char* why) {
    CHECK_THROWS_WITH(options.check(), ContainsSubstring(why));
  };
  TransformerXlOptions options = auxiliary_model(true, 0.5);
  CHECK_NOTHROW(options.check());
  options.second_target = 1.5;
  refused(options, "second_target");
  // With one layer there is nothing before the last.
  CHECK(AuxiliaryHeads({.vocabulary = 5, .width = 4, .layers = 1, .intermediate = true}).most() == 0);
  options = auxiliary_model(false, 0.5);
  options.cutoffs = {2};
  refused(options, "must be empty with second_target");
}

}  // namespace engram::harness::auxiliary_heads_test
