/// Product-key memories inside models of every family: that gradients of whole models are right, wherever a memory
/// stands, and that what a layer keeps and loses is as the placement says.

#include <cmath>
#include <functional>

#include "nn/models/all_attention.hpp"
#include "nn/models/product_key_transformer.hpp"
#include "nn/models/transformer_xl.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::memory_in_models_test {
namespace {

using reference::Array64;

ProductKeyOptions small_memory(MemoryPlacement placement) {
  ProductKeyOptions options{.layers = {2}, .placement = placement, .subkeys = 4, .heads = 2, .selected = 3};
  options.query_width = 4;
  return options;
}

std::unique_ptr<LanguageModel> make(const std::string& family, const ProductKeyOptions& memories) {
  constexpr std::int64_t kVocabulary = 5, kLayers = 3, kWidth = 6;
  if (family == "all_attention") {
    const bool second = memories.placement != MemoryPlacement::after;
    AllAttentionOptions options{.memory_mode = second ? MemoryMode::transformer : MemoryMode::all,
                                .vocabulary = kVocabulary,
                                .layers = kLayers,
                                .width = kWidth,
                                .heads = 2,
                                .inner = second ? 7 : 0,
                                .slots = second ? 0 : 3,
                                .max_span = 6};
    options.span = SpanKind::fixed;
    options.memories = memories;
    return std::make_unique<AllAttentionModel>(options);
  }
  if (family == "transformer_xl") {
    TransformerXlOptions options{
        .vocabulary = kVocabulary, .layers = kLayers, .width = kWidth, .heads = 2, .inner = 7, .memory = 4};
    options.memories = memories;
    return std::make_unique<TransformerXlModel>(options);
  }
  ProductKeyTransformerOptions options{
      .vocabulary = kVocabulary, .layers = kLayers, .width = kWidth, .heads = 2, .inner = 7, .position_rows = 8};
  options.memories = memories;
  return std::make_unique<ProductKeyTransformer>(options);
}

struct PlacedFamily : Bench {
  std::unique_ptr<LanguageModel> model;
  ParameterStore store;

  PlacedFamily(const std::string& family, const ProductKeyOptions& memories) : model(make(family, memories)) {
    collect(*model, store);
    store.place(*backend, DType::f64, 3);
    reference::RandomArrays random(9);
    for (const auto& [name, parameter] : store.parameters()) {  // start values would hide mistakes
      if (parameter->gradient_kind() == Gradient::none) continue;
      Array64 values = random.array({parameter->shape().count()}, 0.4);
      if (name.ends_with(".gain"))
        for (double& value : values.data) value += 1;
      write(parameter->value(), values);
    }
    model->refresh(*backend);
  }
  ~PlacedFamily() { store.clear_row_gradients(); }

  double loss(bool backward = false, ModelTrace* trace = nullptr) {
    step.begin({});
    Tape tape(step);
    const TokenBatch batch{.inputs = ids(random_tokens(2 * 6, 5, 1), {2, 6}),
                           .targets = ids(random_tokens(2 * 6, 5, 2), {12})};
    ModelPast past = model->training_past(*backend, heap, 2, DType::f64);
    const auto parts = model->tokens().losses(model->hidden(tape, batch, past, trace), batch, 1);
    const double sum = read(parts[0].loss.value()).data[0];
    if (backward) tape.backward({parts[0].loss});
    return sum;
  }
  /// A table's rows as they are with the rows of its gradient, times h, added.
  std::vector<double> moved_table(Parameter& table, double h, double& square) {
    Array64 values = read(table.value());
    const std::size_t width = static_cast<std::size_t>(table.shape()[1]);
    std::vector<double> sum(values.data.size());
    for (const RowGradient::Part& part : table.row_gradient().parts) {
      const Array64 rows = read(part.uses.ids), weights = read(part.uses.weights), sources = read(part.uses.sources);
      for (std::size_t use = 0; use < rows.data.size(); ++use)
        for (std::size_t c = 0; c < width; ++c)
          sum[static_cast<std::size_t>(rows.data[use]) * width + c] +=
              weights.data[use] * sources.data[use / static_cast<std::size_t>(part.uses.per_source()) * width + c];
    }
    square = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      square += sum[i] * sum[i];
      values.data[i] += h * sum[i];
    }
    return values.data;
  }
  std::vector<double> moved(Parameter& parameter, double h, double& square) {
    if (parameter.gradient_kind() == Gradient::rows) return moved_table(parameter, h, square);
    Array64 values = read(parameter.value());
    const Array64 gradient = read(parameter.gradient());
    square = 0;
    for (std::size_t i = 0; i < values.data.size(); ++i) {
      square += gradient.data[i] * gradient.data[i];
      values.data[i] += h * gradient.data[i];
    }
    return values.data;
  }
};

TEST_CASE("memories in models: along each parameter's gradient the loss rises by its square") {
  const auto family = GENERATE(std::string("all_attention"), std::string("transformer_xl"), std::string("product_key"));
  const auto placement = GENERATE(MemoryPlacement::replace, MemoryPlacement::beside, MemoryPlacement::after);
  CAPTURE(family, name_of(placement));
  PlacedFamily placed(family, small_memory(placement));
  CHECK((placed.store.find("layers.1.feed_forward.inner.weight") == nullptr) ==
        (placement == MemoryPlacement::replace || (family == "all_attention" && placement == MemoryPlacement::after)));
  REQUIRE(placed.store.find("layers.1.memory.keys") != nullptr);
  CHECK(placed.store.find("layers.0.memory.keys") == nullptr);
  placed.store.zero_gradients(placed.step);
  placed.loss(true);

  struct Wanted {
    Parameter* parameter;
    std::vector<double> up, down, now;
    double square, h;
  };
  std::vector<Wanted> all;
  for (const auto& [name, parameter] : placed.store.parameters()) {
    if (parameter->gradient_kind() == Gradient::none) continue;
    Wanted wanted{parameter, {}, {}, placed.read(parameter->value()).data, 0, 0};
    placed.moved(*parameter, 0, wanted.square);
    wanted.h = 1e-6 / std::max(1e-3, std::sqrt(wanted.square));
    wanted.up = placed.moved(*parameter, wanted.h, wanted.square);
    wanted.down = placed.moved(*parameter, -wanted.h, wanted.square);
    all.push_back(std::move(wanted));
  }
  placed.store.zero_gradients(placed.step);
  for (const Wanted& wanted : all) {
    CAPTURE(wanted.parameter->name());
    const auto loss_with = [&](const std::vector<double>& values) {
      placed.write(wanted.parameter->value(), {{static_cast<std::int64_t>(values.size())}, values});
      return placed.loss();
    };
    const double slope = (loss_with(wanted.up) - loss_with(wanted.down)) / (2 * wanted.h);
    loss_with(wanted.now);
    CHECK(slope == Approx(wanted.square).epsilon(1e-5).margin(1e-7));
  }
}

TEST_CASE("memories in models: traces hold what each memory read, for those who ask") {
  const auto family = GENERATE(std::string("all_attention"), std::string("transformer_xl"), std::string("product_key"));
  PlacedFamily placed(family, small_memory(MemoryPlacement::after));
  ModelTrace without(placed.step.objects()), with(placed.step.objects());
  with.keep_memories = true;
  placed.loss(false, &without);
  CHECK(without.memories.empty());
  placed.loss(false, &with);
  REQUIRE(with.memories.size() == 3);
  CHECK_FALSE(with.memories[0].ids);
  CHECK(with.memories[1].ids.shape() == Shape{12, 2, 3});
  const Array64 weights = placed.read(with.memories[1].weights);
  double sum = 0;
  for (const double weight : weights.data) sum += weight;
  CHECK(sum == Approx(12 * 2).epsilon(1e-12));
}

TEST_CASE("memories in models: one table for all of them") {
  ProductKeyOptions shared = small_memory(MemoryPlacement::replace);
  shared.layers = {1, 3};
  shared.shared_values = true;
  PlacedFamily placed("product_key", shared);
  REQUIRE(placed.store.tables().size() == 1);
  placed.store.zero_gradients(placed.step);
  placed.loss(true);
  CHECK(placed.store.tables()[0]->row_gradient().parts.size() == 2);
  double square = 0;
  Parameter& table = *placed.store.tables()[0];
  const std::vector<double> now = placed.read(table.value()).data;
  const std::vector<double> up = placed.moved(table, 1e-6, square), down = placed.moved(table, -1e-6, square);
  placed.store.zero_gradients(placed.step);
  const auto loss_with = [&](const std::vector<double>& values) {
    placed.write(table.value(), {{static_cast<std::int64_t>(values.size())}, values});
    return placed.loss();
  };
  CHECK((loss_with(up) - loss_with(down)) / 2e-6 == Approx(square).epsilon(1e-5));
}

TEST_CASE("memories in models: a placement without a sublayer to replace is refused") {
  AllAttentionOptions options{.vocabulary = 5, .layers = 2, .width = 6, .heads = 2, .slots = 3, .max_span = 6};
  options.memories = small_memory(MemoryPlacement::replace);
  CHECK_THROWS_WITH(options.check(), ContainsSubstring("placement must be after for memory_mode all"));
  options.memories.placement = MemoryPlacement::after;
  CHECK_NOTHROW(options.check());
}

}  // namespace
}  // namespace engram::harness::memory_in_models_test
