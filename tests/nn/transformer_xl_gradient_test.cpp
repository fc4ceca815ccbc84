/// Derivatives of whole models of the Transformer-XL family against central differences, with memories that hold a
/// block before; and f32 on every device against f64.

#include <cmath>
#include <map>

#include "nn/past/segment_memory.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::transformer_xl_gradient_test {
namespace {

struct GradientBench : PlacedXl {
  Ids tokens, targets;
  std::vector<std::vector<double>> memories;  // states of each layer before the block

  explicit GradientBench(const TransformerXlOptions& options, DType type = DType::f64,
                         Backend& device = *available_backends().front(),
                         ActivationPrecision activations = ActivationPrecision::f32)
      : PlacedXl(options, type, device, activations) {
    spread(3);
    ModelPast past = memory(2);
    run(random_ids(2 * 3, options.vocabulary, 21), past, 2);  // less than the memory holds
    for (const auto& layer : past) memories.push_back(to_host(backend, states_of(*layer)).data);
    tokens = random_ids(2 * 3, options.vocabulary, 22);
    targets = random_ids(2 * 3, options.vocabulary, 23);
  }
  static const Tensor& states_of(LayerPast& past) { return dynamic_cast<SegmentMemory&>(past).states(); }

  /// The loss of the block after the same memory; adds to the gradients.
  double loss() {
    ModelPast past = memory(2);
    for (std::size_t layer = 0; layer < past.size() && model.options().memory > 0; ++layer) {
      dynamic_cast<SegmentMemory&>(*past[layer]).restore(model.options().memory, 3);
      write(states_of(*past[layer]), memories[layer]);
    }
    return train(tokens, targets, past, 0.25, 2);
  }
  std::map<std::string, reference::Array64> gradients() {
    store.zero_gradients(step);
    loss();
    std::map<std::string, reference::Array64> all;
    for (const auto& [name, parameter] : store.parameters()) all[name] = gradient(name);
    return all;
  }
};

TEST_CASE("gradients of all parameters of the Transformer-XL family equal central differences", "[night]") {
  for (const XlVariant& variant : xl_variants()) {
    CAPTURE(variant.name);
    GradientBench bench(variant.options);
    const std::map<std::string, reference::Array64> analytic = bench.gradients();
    bench.differentiates = false;
    for (const auto& [name, gradient] : analytic) {
      CAPTURE(name);
      reference::Array64 value = bench.value(name);
      const reference::Array64 numeric = reference::central_differences(
          value,
          [&, &set = name] {
            bench.set(set, value.data);
            return bench.loss();
          },
          1e-5);
      bench.set(name, value.data);
      CHECK(reference::norm(numeric) > 1e-5);
      CHECK(reference::distance_between(gradient, numeric) < 1e-7 * std::max(0.05, reference::norm(numeric)));
    }
  }
}

TEST_CASE("losses and gradients in f32 are those in f64, on every device") {
  for (const auto& device : available_backends())
    for (const XlVariant& variant : xl_variants()) {
      CAPTURE(variant.name, name_of(device->device().kind));
      GradientBench exact(variant.options), bench(variant.options, DType::f32, *device);
      CHECK(bench.loss() == Approx(exact.loss()).margin(2e-5));
      const std::map<std::string, reference::Array64> wanted = exact.gradients(), got = bench.gradients();
      for (const auto& [name, gradient] : wanted) {
        CAPTURE(name);
        CHECK(farthest_apart(gradient.data, got.at(name).data) < 2e-5);
      }
    }
}

TEST_CASE("with bf16 activations losses and gradients stay near those in f64, where a device has them") {
  for (const auto& device : available_backends()) {
    if (!device->stores_bf16()) continue;
    for (const XlVariant& variant : xl_variants()) {
      CAPTURE(variant.name, name_of(device->device().kind));
      GradientBench exact(variant.options), bench(variant.options, DType::f32, *device, ActivationPrecision::bf16);
      // Rounding must not carry an activation over the corner of relu, where its derivative jumps.
      for (PlacedXl* placed : {static_cast<PlacedXl*>(&exact), static_cast<PlacedXl*>(&bench)})
        for (const char* layer : {"layers.0", "layers.1"})
          placed->set(text(layer, ".feed_forward.inner.bias"), std::vector<double>(5, 3.0));
      CHECK(bench.loss() == Approx(exact.loss()).epsilon(0.02));
      const std::map<std::string, reference::Array64> wanted = exact.gradients(), got = bench.gradients();
      double squares = 0, differences = 0;
      for (const auto& [name, gradient] : wanted) {
        squares += std::pow(reference::norm(gradient), 2);
        differences += std::pow(reference::distance_between(gradient, got.at(name)), 2);
      }
      CHECK(std::sqrt(differences) < 0.05 * std::sqrt(squares));
    }
  }
}

}  // namespace
}  // namespace engram::harness::transformer_xl_gradient_test
