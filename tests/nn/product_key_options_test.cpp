/// Where memories stand, and what is refused: [product-key 1.7, 9, 10] (test 16).

#include "nn/layers/product_key_options.hpp"

#include "core/error.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "tests/harness/catch.hpp"

namespace engram::product_key_options_test {
namespace {

using Layers = std::vector<std::int64_t>;

Layers placed(std::int64_t layers, std::int64_t count) {
  return ProductKeyOptions{.count = count}.memory_layers(layers);
}

ProductKeyOptions valid() { return {.count = 1, .subkeys = 8, .heads = 2, .selected = 4, .query_width = 6}; }

void check_refused(const ProductKeyOptions& options, const std::string& message) {
  CHECK_THROWS_WITH(options.check(12, 6), ContainsSubstring(message));
  CHECK_THROWS_AS(options.check(12, 6), UsageError);
}

TEST_CASE("product keys: the rule of the layers that have a memory") {
  CHECK(placed(16, 2) == Layers{6, 12});
  CHECK(placed(12, 1) == Layers{6});
  CHECK(placed(12, 2) == Layers{4, 8});
  CHECK(placed(12, 3) == Layers{3, 6, 9});
  CHECK(placed(24, 1) == Layers{12});
  CHECK(placed(24, 2) == Layers{8, 16});
  CHECK(placed(24, 3) == Layers{6, 12, 18});
  CHECK(placed(16, 1) == Layers{8});
  CHECK(placed(16, 3) == Layers{4, 8, 12});
  // m ceil(L / (m + 1)) would be the last layer or behind it.
  CHECK(placed(4, 2) == Layers{1, 3});
  CHECK(placed(3, 2) == Layers{1, 2});
  CHECK(placed(2, 1) == Layers{1});
  CHECK(placed(6, 0).empty());
  CHECK_THROWS_WITH(placed(3, 3), ContainsSubstring("count must be below the 3 layers of the model, got 3"));
  CHECK(ProductKeyOptions{.layers = {5, 2}}.memory_layers(6) == Layers{2, 5});
  CHECK_THROWS_WITH(ProductKeyOptions{.layers = {7}}.memory_layers(6), ContainsSubstring("from 1 to 6, the layers"));
  CHECK_THROWS_WITH(ProductKeyOptions{.layers = {0}}.memory_layers(6), ContainsSubstring("got 0"));
  CHECK_THROWS_WITH((ProductKeyOptions{.layers = {2, 2}}.memory_layers(6)), ContainsSubstring("got 2 twice"));
}

TEST_CASE("product keys: a memory by itself reads no place in a model, and names a bad option") {
  ProductKeyOptions options = valid();
  options.count = 0;
  CHECK_NOTHROW(ProductKeyMemory(options, 12));
  options.layers = {9};
  CHECK_NOTHROW(ProductKeyMemory(options, 12));
  options.selected = 65;
  CHECK_THROWS_WITH(ProductKeyMemory(options, 12), ContainsSubstring("selected must be from 1 to the 64 slots"));
  CHECK_THROWS_AS(ProductKeyMemory(options, 12), UsageError);
  options.selected = 4;
  options.value_width = 5;
  CHECK_THROWS_WITH(ProductKeyMemory(options, 12), ContainsSubstring("the model's width 12"));
}

TEST_CASE("product keys: every bad option is named with its value") {
  CHECK_NOTHROW(valid().check(12, 6));
  CHECK_NOTHROW(ProductKeyOptions{.subkeys = 0}.check(12, 6));  // no memories at all
  const auto with = [](auto member, auto value) {
    ProductKeyOptions options = valid();
    options.*member = value;
    return options;
  };
  using Options = ProductKeyOptions;
  check_refused(with(&Options::count, -1), "product_key: count must be from 0 to 4096, got -1");
  check_refused(with(&Options::layers, Layers{2}), "count must be 0 beside a list of layers, got 1");
  check_refused(with(&Options::factors, 4), "factors must be 2 or 3, got 4");
  check_refused(with(&Options::subkeys, 0), "subkeys must be from 1 to 2147483647, got 0");
  check_refused(with(&Options::subkeys, std::int64_t{4} << 31), "subkeys must be from 1 to 2147483647, got 8589934592");
  ProductKeyOptions cubes = with(&Options::subkeys, std::int64_t{1} << 21);
  cubes.factors = 3;
  check_refused(cubes, "subkeys^factors must fit 63 bits");
  ProductKeyOptions flat = with(&Options::subkeys, std::int64_t{46341});
  flat.keys = KeyKind::flat;
  check_refused(flat, "at most 2147483647 flat keys");
  check_refused(with(&Options::subkeys, std::int64_t{1} << 30), "values of 12 numbers fit 63 bits, got 1073741824");
  check_refused(with(&Options::heads, 0), "heads must be from 1 to 64, got 0");
  check_refused(with(&Options::heads, 65), "heads must be from 1 to 64, got 65");
  check_refused(with(&Options::selected, 0), "selected must be from 1 to 1048576, got 0");
  check_refused(with(&Options::selected, 65), "selected must be from 1 to the 64 slots of subkeys 8, got 65");
  CHECK_NOTHROW(with(&Options::selected, 64).check(12, 6));
  check_refused(with(&Options::query_width, 7), "7");
  check_refused(with(&Options::query_width, 0), "0");
  check_refused(with(&Options::value_width, 5), "value_width must be the model's width 12 without");
  check_refused(with(&Options::value_width, -1),
                "value_width must be from 0 to 16777216, 0 for the model's width, got -1");
  check_refused(with(&Options::value_dtype, DType::f64), "value_dtype must be f32 or bf16, got f64");
  check_refused(with(&Options::value_dropout, 1.0), "value_dropout must be in [0, 1 - 2^-17), got 1");
  check_refused(with(&Options::query_dropout, -0.5), "query_dropout must be in [0, 1 - 2^-17), got -0.5");
  check_refused(with(&Options::input_dropout, 0.999995), "input_dropout must be in [0, 1 - 2^-17), got 0.999995");
  check_refused(with(&Options::query_network, QueryNetworkKind::identity), "identity");
  ProductKeyOptions both = valid();
  both.projection = true;
  both.gate = MemoryGate::swish;
  check_refused(both, "projection must be false with the gate swish");
  ProductKeyOptions narrow = valid();
  narrow.value_width = 5;
  narrow.projection = true;
  CHECK_NOTHROW(narrow.check(12, 6));
}

TEST_CASE("product keys: slots are counted in 64 bits") {
  CHECK(ProductKeyOptions{.subkeys = 46341}.slots() == 2147488281);
  CHECK(ProductKeyOptions{.factors = 3, .subkeys = 465}.slots() == 100544625);
}

}  // namespace
}  // namespace engram::product_key_options_test
