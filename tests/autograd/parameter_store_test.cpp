#include "autograd/parameter_store.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/table_files.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::parameter_store_test {
namespace {

constexpr Initializer kNormal{Initializer::Kind::normal, 1.0};

/// Three parameters in two groups.
struct Model {
  Parameter weight{{3, 5}, kNormal};
  Parameter bias{{5}, {Initializer::Kind::constant, 0.5}};
  Parameter span{{2}, {Initializer::Kind::uniform, 0.1}, "spans"};
  ParameterStore store;

  void add_in_order() {
    store.add("layer.weight", weight);
    store.add("layer.bias", bias);
    store.add("layer.span", span);
  }
  void add_reversed() {
    store.add("layer.span", span);
    store.add("layer.bias", bias);
    store.add("layer.weight", weight);
  }
};

std::vector<double> values(const Tensor& x) { return StepFixture::values(x); }

TEST_CASE("parameter store: one block per group, entries sorted by name and aligned", "[autograd]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  Model model;
  model.add_in_order();
  model.store.place(*backend, DType::f64, 1);
  REQUIRE(model.store.groups().size() == 2);
  const ParameterGroup& spans = model.store.groups()[0];
  const ParameterGroup& weights = model.store.groups()[1];
  CHECK(spans.name == "spans");
  CHECK(weights.name == "weights");
  CHECK(weights.parameters == std::vector<Parameter*>{&model.bias, &model.weight});
  CHECK(weights.segments[0].offset == 0);
  CHECK(weights.segments[0].count == 5);
  CHECK(weights.segments[1].offset == 32);  // 256 bytes of f64
  CHECK(weights.segments[1].count == 15);
  CHECK(weights.values.count() == 64);
  for (const ParameterGroup& group : model.store.groups())
    for (const Parameter* parameter : group.parameters) {
      CHECK(reinterpret_cast<std::uintptr_t>(parameter->value().raw()) % Allocator::kAlignment == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(parameter->gradient().raw()) % Allocator::kAlignment == 0);
      for (const double gradient : values(parameter->gradient())) CHECK(gradient == 0);
    }
  CHECK(model.weight.value().shape() == Shape{3, 5});
  CHECK(model.weight.value().raw() == weights.values.rows(32, 64).raw());
  const std::vector<double> block = values(weights.values);
  for (const std::size_t padding : {5, 31, 47, 63}) CHECK(block[padding] == 0);
}

TEST_CASE("parameter store: names, counts, finding", "[autograd]") {
  Model model;
  model.add_reversed();
  CHECK(model.store.count() == 22);
  CHECK(model.weight.name() == "layer.weight");
  CHECK(model.store.find("layer.span") == &model.span);
  CHECK(model.store.find("layer") == nullptr);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.store.parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"layer.bias", "layer.span", "layer.weight"});
  CHECK_FALSE(model.store.placed());
  CHECK_FALSE(model.weight.placed());
}

TEST_CASE("parameter store: sizes that wrap in 64 bits are refused by name, before memory is taken", "[autograd]") {
  // Each is a shape; the first two together are 2^60 numbers.
  constexpr std::int64_t kQuarter = std::int64_t{1} << 58;
  Parameter first{{kQuarter, 3}, kNormal}, second{{kQuarter}, kNormal}, third{{kQuarter, 2}, kNormal};
  ParameterStore store;
  store.add("a", first);
  store.add("b", second);
  store.add("c", third);
  const std::string counted = message_of<ShapeError>([&] { store.count(); });
  CHECK_THAT(counted,
             ContainsSubstring("at most 2^60 - 1 numbers") && ContainsSubstring("with b [288230376151711744]"));
  const std::unique_ptr<Backend> backend = open_backend({});
  CHECK_THAT(message_of<ShapeError>([&] { store.place(*backend, DType::f32, 1); }),
             ContainsSubstring("parameters of a group") && ContainsSubstring("with b [288230376151711744]"));
}

TEST_CASE("parameter store: tied parameters are one, under the first name", "[autograd]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  Parameter shared({4}, kNormal);
  ParameterStore store;
  store.add("in.table", shared);
  store.add("out.weight", shared);
  CHECK(store.count() == 4);
  CHECK(shared.name() == "in.table");
  REQUIRE(store.aliases().size() == 1);
  CHECK(store.aliases().at("out.weight") == "in.table");
  CHECK(store.find("out.weight") == nullptr);
  store.place(*backend, DType::f32, 1);
  CHECK(store.groups()[0].parameters.size() == 1);
}

TEST_CASE("parameter store: first values depend on seed and name, not on order or neighbours", "[autograd]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  Model first, second, third, alone;
  first.add_in_order();
  second.add_reversed();
  third.add_in_order();
  alone.store.add("layer.weight", alone.weight);
  first.store.place(*backend, DType::f64, 7);
  second.store.place(*backend, DType::f64, 7);
  third.store.place(*backend, DType::f64, 8);
  alone.store.place(*backend, DType::f64, 7);
  CHECK(values(first.weight.value()) == values(second.weight.value()));
  CHECK(values(first.span.value()) == values(second.span.value()));
  CHECK(values(first.weight.value()) == values(alone.weight.value()));
  CHECK(values(first.weight.value()) != values(third.weight.value()));
  CHECK(values(first.bias.value()) == std::vector<double>(5, 0.5));
  for (const double zeta : values(first.span.value())) CHECK(std::abs(zeta) < 0.1);
}

TEST_CASE("initializer: mean and deviation", "[autograd]") {
  constexpr std::int64_t kCount = 100000;
  std::vector<double> numbers(kCount);
  const auto moments = [&numbers] {
    double sum = 0, squares = 0;
    for (const double x : numbers) sum += x, squares += x * x;
    return std::pair(sum / kCount, std::sqrt(squares / kCount));
  };
  Initializer{Initializer::Kind::normal, 2.0}.fill(numbers.data(), DType::f64, kCount, 3, "x");
  CHECK(std::abs(moments().first) < 5 * 2.0 / std::sqrt(1e5));
  CHECK(moments().second == Approx(2.0).epsilon(0.02));
  Initializer{Initializer::Kind::uniform, 2.0}.fill(numbers.data(), DType::f64, kCount, 3, "x");
  CHECK(moments().second == Approx(2.0 / std::sqrt(3.0)).epsilon(0.02));
  CHECK(std::ranges::max(numbers) < 2.0);
  CHECK(std::ranges::min(numbers) > -2.0);
  CHECK(std::ranges::max(numbers) > 1.99);
  const std::vector<double> centred = numbers;
  Initializer{Initializer::Kind::uniform, 2.0, 5.0}.fill(numbers.data(), DType::f64, kCount, 3, "x");
  for (std::size_t i = 0; i < numbers.size(); i += 997) CHECK(numbers[i] == Approx(5 + centred[i]).epsilon(1e-15));
  // A layer norm's gain of Transformer-XL: N(1, 0.02^2).
  Initializer{Initializer::Kind::normal, 0.02, 1.0}.fill(numbers.data(), DType::f64, kCount, 3, "x");
  CHECK(std::abs(moments().first - 1) < 5 * 0.02 / std::sqrt(1e5));
  for (double& x : numbers) x -= 1;
  CHECK(moments().second == Approx(0.02).epsilon(0.02));
  std::int32_t integer = 0;
  CHECK_THROWS_AS(kNormal.fill(&integer, DType::i32, 1, 3, "x"), DTypeError);
}

TEST_CASE("parameters: gradients of several passes add up until they are cleared", "[autograd]") {
  StepFixture f;
  Model model;
  model.add_in_order();
  model.store.place(*f.backend, DType::f64, 1);
  for (int pass = 1; pass <= 3; ++pass) {
    Tape tape(f.step);
    const Variable bias = tape.parameter(model.bias);
    tape.backward({total(combine({2, 1}, {bias, tape.parameter(model.bias)}))});
    CHECK(values(model.bias.gradient()) == std::vector<double>(5, 3.0 * pass));
    CHECK(values(model.span.gradient()) == std::vector<double>(2, 0.0));
  }
  model.store.zero_gradients(f.step);
  CHECK(values(model.bias.gradient()) == std::vector<double>(5, 0.0));
}

TEST_CASE("parameter store: bf16 copies of matrices follow the values", "[autograd]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  HeapAllocator memory(*backend);
  Step step(*backend, memory);
  constexpr ActivationPrecision rounded = ActivationPrecision::bf16;
  Model model;
  model.add_in_order();
  CHECK_THROWS_WITH(model.store.keep_rounded(step), ContainsSubstring("no memory yet"));
  model.store.place(*backend, DType::f32, 1);
  CHECK_THROWS_WITH(model.weight.value_for(rounded),
                    ContainsSubstring("layer.weight") && ContainsSubstring("bf16 copy"));
  model.store.refresh_rounded(step);  // none are kept
  model.store.keep_rounded(step);
  REQUIRE(model.store.groups()[1].rounded.dtype() == DType::bf16);
  CHECK_FALSE(model.store.groups()[0].rounded);  // spans are no matrices
  CHECK(model.bias.value_for(rounded).raw() == model.bias.value().raw());
  CHECK(model.weight.value_for(ActivationPrecision::f32).raw() == model.weight.value().raw());
  const Tensor copy = model.weight.value_for(rounded);
  CHECK(copy.shape() == Shape{3, 5});
  const auto follows = [&] {
    for (std::int64_t i = 0; i < copy.count(); ++i)
      CHECK(copy.data<bf16>()[i].bits == bf16(model.weight.value().data<float>()[i]).bits);
  };
  follows();
  model.weight.value().data<float>()[7] = 0.3f;
  model.store.refresh_rounded(step);
  follows();
  CHECK(model.weight.gradient().dtype() == DType::f32);

  Model twice;
  twice.add_in_order();
  twice.store.place(*backend, DType::f64, 1);
  CHECK_THROWS_AS(twice.store.keep_rounded(step), DTypeError);
}

TEST_CASE("bf16 activations are refused where no kernel takes them", "[autograd]") {
  StepFixture f;
  f.step.set_activations(ActivationPrecision::f32);
  CHECK_THROWS_WITH(f.step.set_activations(ActivationPrecision::bf16),
                    ContainsSubstring("bf16 activations") && ContainsSubstring("cpu"));
  CHECK(f.step.activations() == ActivationPrecision::f32);
}

TEST_CASE("parameters: mistakes are errors", "[autograd]") {
  StepFixture f;
  Model model;
  Tape tape(f.step);
  CHECK_THROWS_WITH(tape.parameter(model.weight),
                    "parameter: one of shape [3, 5] was never visited\n  add it to visit() of its module");
  model.add_in_order();
  CHECK_THROWS_WITH(tape.parameter(model.weight),
                    "parameter: layer.weight has no memory yet\n  place its ParameterStore before using it");
  Parameter other({1}, kNormal);
  CHECK_THROWS_WITH(model.store.add("layer.bias", other), "parameter store: two parameters are named layer.bias");
  model.store.place(*f.backend, DType::f32, 1);
  CHECK_THROWS_WITH(model.store.add("late", other), "parameter store: late was added after the memory was taken");
  CHECK_THROWS_AS(model.store.place(*f.backend, DType::f32, 1), Error);
}

TEST_CASE("parameter store: tables and buffers have memory of their own, in no group", "[autograd]") {
  StepFixture f;
  Parameter weight{{3, 5}, kNormal};
  Parameter table{{600000, 3}, kNormal, Gradient::rows};  // longer than the pieces in which values are drawn
  Parameter rounded{{7, 2}, kNormal, Gradient::rows, DType::bf16};
  Parameter mean{{4}, {Initializer::Kind::constant, 0.25}, Gradient::none};
  ParameterStore store;
  store.add("weight", weight);
  store.add("table", table);
  store.add("rounded", rounded);
  store.add("mean", mean);
  CHECK(store.count() == 15 + 1800000 + 14);
  store.place(*f.backend, DType::f64, 9);
  REQUIRE(store.groups().size() == 1);
  CHECK(store.groups()[0].parameters == std::vector<Parameter*>{&weight});
  CHECK(store.tables() == std::vector<Parameter*>{&rounded, &table});

  // Pieces make no difference to the numbers, and neither does the dtype but for its rounding.
  std::vector<double> drawn(1800000);
  kNormal.fill(drawn.data(), DType::f64, 1800000, 9, "table");
  CHECK(values(table.value()) == drawn);
  kNormal.fill(drawn.data(), DType::f64, 14, 9, "rounded");
  REQUIRE(rounded.value().dtype() == DType::bf16);
  for (std::size_t i = 0; i < 14; ++i)
    CHECK(rounded.value().data<bf16>()[i].bits == bf16(static_cast<float>(drawn[i])).bits);
  CHECK(values(mean.value()) == std::vector<double>(4, 0.25));

  CHECK_THROWS_WITH(table.gradient(), ContainsSubstring("table has a gradient of rows"));
  CHECK_THROWS_WITH(mean.gradient(), ContainsSubstring("mean has none"));
  CHECK_THROWS_WITH(weight.row_gradient(), ContainsSubstring("weight is none"));
  Tape tape(f.step);
  CHECK_FALSE(tape.parameter(mean).requires_grad());
  CHECK(tape.parameter(table).requires_grad());
  CHECK_THROWS_AS(tape.parameter(table, 0, 2), Error);
  CHECK_FALSE(table.is_matrix());

  table.row_gradient().parts.push_back(
      {.uses = {.ids = f.step.empty({1, 1}, DType::i64), .weights = {}, .sources = {}}, .order = {}});
  store.zero_gradients(f.step);
  CHECK(table.row_gradient().parts.empty());
}

TEST_CASE("parameter store: tables in mapped files stay there", "[autograd]") {
  StepFixture f;
  const TemporaryFolder folder;
  std::vector<float> numbers(21, 3);
  put_table(folder / "table.table", {7, 3}, DType::f32, numbers.data());
  put_table(folder / "rounded.table", {7, 2}, DType::bf16, numbers.data());
  struct Tables {
    Parameter weight{{3, 5}, kNormal};
    Parameter table{{7, 3}, kNormal, Gradient::rows};
    Parameter rounded{{7, 2}, kNormal, Gradient::rows, DType::bf16};
    Parameter mean{{4}, kNormal, Gradient::none};
    ParameterStore store;
    Tables() {
      store.add("weight", weight);
      store.add("table", table);
      store.add("rounded", rounded);
      store.add("mean", mean);
    }
  };
  Tables tables;
  CHECK(tables.table.mapped() == nullptr);
  tables.store.place(*f.backend, DType::f32, 9, folder.path());
  CHECK(tables.store.tables() == std::vector<Parameter*>{&tables.rounded, &tables.table});
  REQUIRE(tables.table.mapped() != nullptr);
  CHECK(tables.table.placed());
  CHECK(tables.table.mapped()->padded_rows().data<float>()[6 * 16 + 2] == 3);
  CHECK(tables.rounded.mapped()->header().dtype == DType::bf16);
  CHECK(tables.mean.mapped() == nullptr);
  CHECK(tables.mean.value().count() == 4);
  CHECK(tables.weight.value().count() == 15);
  CHECK_THROWS_WITH(tables.table.value(),
                    ContainsSubstring("table is in the file") && ContainsSubstring("table.table"));
  Tape tape(f.step);
  CHECK_THROWS_WITH(tape.parameter(tables.table), ContainsSubstring("no values in memory"));

  Tables doubles;
  CHECK_THROWS_WITH(doubles.store.place(*f.backend, DType::f64, 9, folder.path()),
                    ContainsSubstring("f64 [7, 3], got f32 [7, 3]"));
  std::filesystem::remove(folder / "rounded.table");
  Tables missing;
  CHECK_THROWS_AS(missing.store.place(*f.backend, DType::f32, 9, folder.path()), FileError);
}

TEST_CASE("parameter store: what is frozen has the same values, no gradient, and is a constant on tapes",
          "[autograd]") {
  StepFixture f;
  Model whole, frozen;
  whole.add_in_order();
  whole.store.place(*f.backend, DType::f32, 1);
  frozen.add_in_order();
  frozen.store.add("layer.again", frozen.weight);
  frozen.store.freeze("layer.again");
  frozen.store.freeze("layer.span");
  CHECK_THROWS_WITH(frozen.store.freeze("layer.wait"), ContainsSubstring("got layer.wait"));
  CHECK(frozen.store.layout(DType::f32).size() == 1);
  CHECK(frozen.store.layout(DType::f32, true).size() == 2);
  frozen.store.place(*f.backend, DType::f32, 1);
  CHECK_THROWS_WITH(frozen.store.freeze("layer.bias"), ContainsSubstring("after the memory was taken"));
  REQUIRE(frozen.store.groups().size() == 1);
  CHECK(frozen.store.groups()[0].parameters == std::vector<Parameter*>{&frozen.bias});
  CHECK(frozen.store.count() == whole.store.count());
  CHECK(host_doubles(*f.backend, frozen.weight.value()) == host_doubles(*f.backend, whole.weight.value()));
  CHECK(host_doubles(*f.backend, frozen.span.value()) == host_doubles(*f.backend, whole.span.value()));
  CHECK(frozen.weight.frozen());
  CHECK_FALSE(frozen.bias.frozen());
  CHECK_THROWS_WITH(frozen.weight.gradient(), ContainsSubstring("frozen has no gradient, got layer.weight"));
  frozen.store.zero_gradients(f.step);
  frozen.store.keep_rounded(f.step);
  CHECK(frozen.weight.value_for(ActivationPrecision::bf16).dtype() == DType::bf16);
  Tape tape(f.step);
  CHECK_FALSE(tape.parameter(frozen.weight).requires_grad());
  CHECK_FALSE(tape.parameter(frozen.weight, 1, 2).requires_grad());
  CHECK(tape.parameter(frozen.bias).requires_grad());
}

}  // namespace
}  // namespace engram::harness::parameter_store_test
