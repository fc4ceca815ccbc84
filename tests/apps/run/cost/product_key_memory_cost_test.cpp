/// Arithmetic and memory traffic of product-key memories: the tables of [product-key 7.1, 7.2], and
/// steps of small models by hand.

#include "apps/run/cost/product_key_memory_cost.hpp"

#include <cmath>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/product_key_cost.hpp"
#include "apps/run/cost/table_cost.hpp"
#include "apps/run/cost/transformer_xl_cost.hpp"
#include "tests/harness/catch.hpp"

namespace engram::product_key_memory_cost_test {
namespace {

TEST_CASE("product-key memory: FLOPs and bytes of a token are those of the worked tables", "[product-key][T24]") {
  struct Row {
    std::int64_t width, subkeys;
    double query, scores, read, total, feed_forward;  // MFLOP, to the digits that the page prints
    double scores_digit, total_digit;
    double bytes;
  };
  constexpr Row kRows[] = {{1024, 512, 4.19, 2.10, 0.26, 6.55, 16.8, 0.01, 0.01, 524'288},
                           {1600, 512, 6.55, 2.10, 0.41, 9.06, 41.0, 0.01, 0.01, 819'200},
                           {1024, 1024, 4.19, 4.19, 0.26, 8.65, 16.8, 0.01, 0.01, 524'288},
                           {1024, 4096, 4.19, 16.8, 0.26, 21.2, 16.8, 0.1, 0.1, 524'288},
                           {1024, 10'000, 4.19, 41.0, 0.26, 45.4, 16.8, 0.1, 0.1, 524'288}};
  for (const Row& row : kRows) {
    CAPTURE(row.width, row.subkeys);
    const ProductKeyOptions options{.count = 1, .subkeys = row.subkeys};
    const ProductKeyMemoryCost cost = product_key_memory_cost(options, row.width);
    CHECK(cost.query / 1e6 == Approx(row.query).epsilon(0).margin(0.0051));
    CHECK(cost.scores / 1e6 == Approx(row.scores).epsilon(0).margin(0.51 * row.scores_digit));
    CHECK(cost.read / 1e6 == Approx(row.read).epsilon(0).margin(0.0051));
    CHECK(cost.flops() / 1e6 == Approx(row.total).epsilon(0).margin(0.51 * row.total_digit));
    CHECK(cost.output == 0);
    CHECK(cost.read_bytes == row.bytes);
    // What a memory in its place adds to 16 d^2.
    const auto d = static_cast<double>(row.width);
    CHECK((cost.flops() - added_flops(options, row.width, 12, 16 * d * d)) / 1e6 ==
          Approx(row.feed_forward).epsilon(0).margin(0.051));
  }
}

TEST_CASE("product-key memory: FLOPs of the variants", "[product-key]") {
  ProductKeyOptions options{.count = 1, .subkeys = 3, .heads = 2, .selected = 4, .query_width = 6};
  constexpr std::int64_t kWidth = 10;
  const auto cost = [&] { return product_key_memory_cost(options, kWidth); };
  CHECK(cost().query == 2 * 10 * 12);
  CHECK(cost().scores == 2 * 2 * 3 * 6);
  CHECK(cost().read == 2 * 8 * 10);
  options.keys = KeyKind::flat;
  CHECK(cost().scores == 2 * 2 * 9 * 6);
  options.keys = KeyKind::product;
  options.factors = 3;
  CHECK(cost().scores == 2 * 2 * 3 * 6);
  options.gate = MemoryGate::scalar;
  CHECK(cost().output == 2 * 10);
  options.gate = MemoryGate::swish;
  options.value_width = 7;
  CHECK(cost().read == 2 * 8 * 7);
  CHECK(cost().output == 2 * 2 * 10 * 7);
  options.gate = MemoryGate::none;
  options.projection = true;
  CHECK(cost().output == 2 * 10 * 7);
  options.value_dtype = DType::bf16;
  CHECK(cost().read_bytes == 8 * 7 * 2);
  options.query_network = QueryNetworkKind::mlp;
  options.query_hidden = {5};
  CHECK(cost().query == 2 * (10 * 5 + 5 * 12));
  options.query_network = QueryNetworkKind::heads_mlp;  // one for each of 2 heads and 3 factors, with 2 outputs
  CHECK(cost().query == 2 * 6 * (10 * 5 + 5 * 2));
  options.query_network = QueryNetworkKind::identity;
  CHECK(cost().query == 0);
}

TEST_CASE("product-key memory: what memories add depends on their place", "[product-key]") {
  ProductKeyOptions options{.count = 2, .subkeys = 3, .heads = 2, .selected = 4, .query_width = 6};
  const double one = 240 + 72 + 160;
  CHECK(added_flops(options, 10, 6, 1000) == 2 * (one - 1000));
  options.placement = MemoryPlacement::beside;
  CHECK(added_flops(options, 10, 6, 1000) == 2 * one);
  options.placement = MemoryPlacement::after;
  CHECK(added_flops(options, 10, 6, 1000) == 2 * one);
  options.count = 0;
  CHECK(added_flops(options, 10, 6, 1000) == 0);
  options.layers = {1, 4, 6};
  CHECK(added_flops(options, 10, 6, 1000) == 3 * one);
}

TEST_CASE("product-key memory: rows that random reads touch are those of the worked tables", "[product-key]") {
  struct Row {
    double slots, tokens;
    std::int64_t touched;
    double percent, digit;
  };
  constexpr Row kRows[] = {{262'144, 1'024, 103'146, 39, 1},       {262'144, 8'192, 257'343, 98, 1},
                           {262'144, 65'536, 262'144, 100, 1},     {1'048'576, 1'024, 123'211, 12, 1},
                           {1'048'576, 8'192, 662'827, 63, 1},     {1'048'576, 65'536, 1'048'224, 100, 1},
                           {16'777'216, 1'024, 130'561, 0.8, 0.1}, {16'777'216, 8'192, 1'016'480, 6, 1},
                           {16'777'216, 65'536, 6'601'320, 39, 1}, {100'000'000, 1'024, 130'986, 0.1, 0.1},
                           {100'000'000, 8'192, 1'043'098, 1, 1},  {100'000'000, 65'536, 8'046'400, 8, 1}};
  for (const Row& row : kRows) {
    CAPTURE(row.slots, row.tokens);
    const double touched = touched_rows(row.slots, row.tokens * 128);
    CHECK(std::llround(touched) == row.touched);
    CHECK(100 * touched / row.slots == Approx(row.percent).epsilon(0).margin(0.51 * row.digit));
  }
  CHECK(touched_rows(4, 2) == Approx(1.75).epsilon(1e-15));
  CHECK(touched_rows(1, 5) == 1);
}

TEST_CASE("product-key memory: traffic of the paper's table is that of the worked tables", "[product-key]") {
  struct Row {
    std::int64_t subkeys;
    double lazy, dense;  // GB
  };
  constexpr Row kRows[] = {{512, 7.4, 7.5}, {1024, 19, 30}, {4096, 29, 481}};
  for (const Row& row : kRows) {
    CAPTURE(row.subkeys);
    const ProductKeyOptions options{.count = 1, .subkeys = row.subkeys};
    TableOptimizerOptions optimizer;
    const TableTraffic lazy = table_traffic(options, 1024, 12, optimizer, 8192);
    CHECK(lazy.gathered_bytes / 1e9 == Approx(4.3).epsilon(0).margin(0.051));
    CHECK(lazy.update_bytes / 1e9 == Approx(row.lazy).epsilon(0).margin(row.lazy < 10 ? 0.051 : 0.51));
    optimizer.mode = TableMode::dense;
    const TableTraffic dense = table_traffic(options, 1024, 12, optimizer, 8192);
    CHECK(dense.update_bytes / 1e9 == Approx(row.dense).epsilon(0).margin(row.dense < 10 ? 0.051 : 0.51));
    CHECK(dense.touched == lazy.touched);
    CHECK(dense.gradient_bytes == lazy.gradient_bytes);
  }
}

/// Two memories of 4 slots, of which a token reads one: of 2 tokens 1.75 slots are touched.
ProductKeyOptions two_memories() {
  return {
      .layers = {1, 2}, .placement = MemoryPlacement::after, .subkeys = 2, .heads = 1, .selected = 1, .query_width = 2};
}

TEST_CASE("product-key memory: sizes and traffic of small tables by hand", "[product-key]") {
  ProductKeyOptions options = two_memories();
  TableOptimizerOptions optimizer;
  const auto sizes = [&] { return table_sizes(options, 8, 2, optimizer); };
  const auto traffic = [&] { return table_traffic(options, 8, 2, optimizer, 2); };
  CHECK(sizes().parameters() == 2 * 4 * 8);
  CHECK(sizes().value_bytes == 256);
  CHECK(sizes().state_bytes == 512);
  CHECK(traffic().touched == Approx(3.5));
  CHECK(traffic().gathered_bytes == 2 * 2 * 32);
  CHECK(traffic().gradient_bytes == Approx(112));
  CHECK(traffic().update_bytes == Approx(784));  // 3.5 rows of 28 * 8 bytes
  CHECK(traffic().bytes() == Approx(1024));
  for (const TableMode mode : {TableMode::row_step, TableMode::deferred}) {
    optimizer.mode = mode;
    CHECK(sizes().state_bytes == 512 + 8 * 4);
    CHECK(traffic().update_bytes == Approx(812));
  }
  optimizer.mode = TableMode::dense;
  CHECK(sizes().state_bytes == 512);
  CHECK(traffic().update_bytes == 8 * 224);
  optimizer.kind = TableKind::row_adagrad;  // which has no modes
  CHECK(sizes().state_bytes == 8 * 4);
  CHECK(traffic().update_bytes == Approx(364));
  optimizer = {};
  options.value_dtype = DType::bf16;
  CHECK(sizes().value_bytes == 128);
  CHECK(sizes().state_bytes == 512);
  CHECK(traffic().gathered_bytes == 64);
  CHECK(traffic().gradient_bytes == Approx(56));
  CHECK(traffic().update_bytes == Approx(672));
  options.value_dtype = DType::f32;
  options.shared_values = true;  // 4 uses of one table: 4 (1 - (3/4)^4) rows
  CHECK(sizes().parameters() == 32);
  CHECK(sizes().memories == 2);
  CHECK(traffic().touched == Approx(2.734375));
  CHECK(traffic().gathered_bytes == 128);
  CHECK(traffic().gradient_bytes == Approx(112));
  CHECK(traffic().update_bytes == Approx(612.5));
  options.layers = {};
  CHECK(sizes().parameters() == 0);
  CHECK(traffic().bytes() == 0);
}

TEST_CASE("product-key memory: a step of every family updates tables by rows, all else densely", "[product-key]") {
  // 100 parameters besides the tables; the memories of two_memories() move 1024 bytes. Behind their layers they leave
  // everything else as it is.
  const auto check = [](auto model, std::int64_t extension) {
    StepSetting setting{.block = 2 - extension, .extension = extension, .batch = 1, .window = 2, .parameters = 100};
    setting.optimizer = OptimizerKind::adam;
    const StepCost without = step_cost(model, setting);
    model.memories = two_memories();
    setting.parameters = 100 + 64;
    const StepCost with = step_cost(model, setting);
    CHECK(with.bytes - without.bytes == Approx(1024));
    setting.tables.mode = TableMode::dense;
    CHECK(step_cost(model, setting).bytes - with.bytes == Approx(1792 - 784));
    return with.token_bytes - without.token_bytes;
  };
  // Of a generated token: keys of 2 x 2, a query map of 8 x 2, one row of 8.
  constexpr double kTokenBytes = 2 * 4 * (4 + 16 + 8);
  ProductKeyTransformerOptions product_key{.vocabulary = 9, .layers = 2, .width = 8, .heads = 2, .position_rows = 16};
  CHECK(check(product_key, 0) == kTokenBytes);
  TransformerXlOptions transformer_xl;
  transformer_xl.vocabulary = 9;
  transformer_xl.layers = 2;
  transformer_xl.width = 8;
  transformer_xl.heads = 2;
  transformer_xl.inner = 16;
  transformer_xl.memory = 6;
  CHECK(check(transformer_xl, 0) == kTokenBytes);
  check(transformer_xl, 1);  // tokens without a loss read memories too
  AllAttentionOptions all_attention;
  all_attention.vocabulary = 9;
  all_attention.layers = 2;
  all_attention.width = 8;
  all_attention.heads = 2;
  all_attention.slots = 4;
  all_attention.max_span = 8;
  // Here `parameters`, which stayed the same, has keys and maps.
  CHECK(check(all_attention, 0) == 2 * 4 * 8);

  // In the place of a feed-forward sublayer of 8 x 32 and 32 x 8 its weights are not read.
  const StepSetting setting{.block = 2, .parameters = 100};
  const double behind = [&] {
    product_key.memories = two_memories();
    return step_cost(product_key, setting).token_bytes;
  }();
  product_key.memories.placement = MemoryPlacement::replace;
  CHECK(behind - step_cost(product_key, setting).token_bytes == 2 * 4 * 2 * 8 * 32);
}

}  // namespace
}  // namespace engram::product_key_memory_cost_test
