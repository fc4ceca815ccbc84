/// Mixed precision: a model of layers without attention, trained with f32 and with bf16 activations on every device
/// that has kernels for both.

#include <cmath>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/dropout.hpp"
#include "core/arena.hpp"
#include "core/kernels/fill.hpp"
#include "nn/layers/embedding.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/linear.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::bf16_training_test {
namespace {

constexpr std::int64_t kSymbols = 11, kWidth = 16, kInner = 24, kTokens = 40;

/// Guesses a token from the one before it.
class Guesser final : public Module {
 public:
  Guesser() : embedding_(kSymbols, kWidth), output_(kWidth, kSymbols) {
    for (int layer = 0; layer < 2; ++layer) {
      sublayers_.push_back(std::make_unique<FeedForward>(kWidth, kInner, 0.1));
      norms_.push_back(std::make_unique<LayerNorm>(kWidth));
    }
  }
  Variable forward(Tape& tape, const Tensor& tokens) {
    Variable hidden = dropout(embedding_.forward(tape, tokens), 0.1);
    for (std::size_t layer = 0; layer < sublayers_.size(); ++layer)
      hidden = norms_[layer]->forward(sublayers_[layer]->forward(hidden), hidden);
    return output_.forward(hidden, ProductResult::summed);
  }
  void visit(Visitor& visit) override {
    visit("embedding", embedding_);
    visit("sublayers", sublayers_);
    visit("norms", norms_);
    visit("output", output_);
  }

 private:
  Embedding embedding_;
  std::vector<std::unique_ptr<FeedForward>> sublayers_;
  std::vector<std::unique_ptr<LayerNorm>> norms_;
  Linear output_;
};

struct Training {
  Backend& backend;
  HeapAllocator heap{backend};
  Arena memory{heap, /*poison=*/true};
  Step step{backend, memory, 7};
  ParameterStore store;
  Guesser model;
  std::unique_ptr<Optimizer> optimizer;
  std::uint64_t steps = 0;

  Training(Backend& device, ActivationPrecision activations) : backend(device) {
    collect(model, store);
    store.place(backend, DType::f32, 3);
    step.set_activations(activations);
    if (activations == ActivationPrecision::bf16) store.keep_rounded(step);
    optimizer = make_optimizer({.kind = OptimizerKind::adam, .clip = 1, .clip_kind = ClipKind::global}, store, step);
  }

  Tensor ids(const Tokens& tokens) {
    Tensor tensor = step.empty({static_cast<std::int64_t>(tokens.size())}, DType::i32);
    const std::vector<std::int32_t> host(tokens.begin(), tokens.end());
    backend.copy(tensor.raw(), host.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
  /// The loss of one step, whose targets are a function of its tokens.
  double train() {
    const StepScalars scalars{.step = steps, .learning_rate = 0.01f};
    const Tokens tokens = random_tokens(kTokens, kSymbols, 100 + steps++);
    Tokens targets;
    for (const std::int64_t token : tokens) targets.push_back((3 * token + 1) % kSymbols);
    store.zero_gradients(step);
    double loss = 0;
    {
      step.begin(scalars);
      Tape tape(step);
      Tensor weight = step.empty({kTokens}, DType::f32);
      kernels::fill(step, weight, 1.0 / kTokens);
      const CrossEntropy result = cross_entropy(model.forward(tape, ids(tokens)), ids(targets), weight);
      loss = to_host(backend, result.loss.value()).data[0];
      tape.backward({result.loss});
    }
    step.begin(scalars);
    optimizer->update(step);
    memory.end_step();
    return loss;
  }
  std::vector<double> losses(int count) {
    std::vector<double> all;
    for (int i = 0; i < count; ++i) all.push_back(train());
    return all;
  }
};

std::vector<Backend*> devices() {
  std::vector<Backend*> found;
  for (const auto& backend : available_backends())
    if (backend->stores_bf16()) found.push_back(backend.get());
  if (found.empty()) WARN("no device of this build has kernels for bf16");
  return found;
}

TEST_CASE("bf16 activations: losses stay near those of f32, and the model learns as well", "[bf16]") {
  for (Backend* device : devices()) {
    INFO(text(device->device()));
    constexpr int kSteps = 60;
    const std::vector<double> f32 = Training(*device, ActivationPrecision::f32).losses(kSteps);
    const std::vector<double> bf16 = Training(*device, ActivationPrecision::bf16).losses(kSteps);
    double worst = 0, mean = 0;
    for (std::size_t i = 0; i < f32.size(); ++i) {
      worst = std::max(worst, std::abs(bf16[i] - f32[i]));
      mean += (bf16[i] - f32[i]) / kSteps;
    }
    CAPTURE(worst, mean, f32.front(), bf16.front(), f32.back(), bf16.back());
    CHECK(std::abs(bf16.front() - f32.front()) < 0.005 * f32.front());
    CHECK(bf16.front() != f32.front());
    CHECK(worst < 0.02);
    CHECK(std::abs(mean) < 0.005);
    CHECK(f32.back() < 0.5);
    CHECK(bf16.back() < 0.5);
    CHECK(Training(*device, ActivationPrecision::bf16).losses(3) ==
          std::vector<double>(bf16.begin(), bf16.begin() + 3));
  }
}

TEST_CASE("bf16 activations: parameters and gradients stay f32, copies follow every update", "[bf16]") {
  for (Backend* device : devices()) {
    Training training(*device, ActivationPrecision::bf16);
    const std::vector<double> before = to_host(*device, training.store.groups()[0].values).data;
    training.train();
    for (const auto& [name, parameter] : training.store.parameters()) {
      INFO(name);
      CHECK(parameter->value().dtype() == DType::f32);
      CHECK(parameter->gradient().dtype() == DType::f32);
      const Tensor& read = parameter->value_for(ActivationPrecision::bf16);
      CHECK(read.dtype() == (parameter->is_matrix() ? DType::bf16 : DType::f32));
      const std::vector<double> values = to_host(*device, parameter->value()).data, seen = to_host(*device, read).data;
      int finer = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(values[i]);
        CHECK(seen[i] == (parameter->is_matrix() ? static_cast<float>(bf16(value)) : value));
        finer += static_cast<double>(static_cast<float>(bf16(value))) != values[i];
      }
      CHECK(finer > static_cast<int>(values.size()) / 2);
    }
    CHECK_FALSE(to_host(*device, training.store.groups()[0].values).data == before);
  }
}

TEST_CASE("bf16 activations: a step reads copies, so a store without them is an error", "[bf16]") {
  for (Backend* device : devices()) {
    Training training(*device, ActivationPrecision::f32);
    training.step.set_activations(ActivationPrecision::bf16);
    Tape tape(training.step);
    CHECK_THROWS_WITH(training.model.forward(tape, training.ids({1, 2})), ContainsSubstring("keep_rounded"));
  }
}

TEST_CASE("bf16 activations: one store serves steps of both kinds", "[bf16]") {
  for (Backend* device : devices()) {
    Training training(*device, ActivationPrecision::bf16);
    const auto logits = [&](ActivationPrecision activations) {
      training.step.set_activations(activations);
      Tape tape(training.step, Tape::Mode::inference);
      const Variable result = training.model.forward(tape, training.ids({0, 1, 2, 3, 4, 5}));
      CHECK(result.dtype() == DType::f32);
      return to_host(*device, result.value());
    };
    const reference::Array64 bf16 = logits(ActivationPrecision::bf16), f32 = logits(ActivationPrecision::f32);
    CHECK(largest_difference(bf16, f32) > 1e-4);
    CHECK(largest_difference(bf16, f32) < 0.1);
  }
}

}  // namespace
}  // namespace engram::harness::bf16_training_test
