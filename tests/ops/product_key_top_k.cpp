#include "autograd/functions/product_key_top_k.hpp"

#include <memory>

#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/product_keys.hpp"

namespace engram::harness::product_key_top_k_test {
namespace {

/// Where two scores are nearly equal, f32 may select another slot than f64, and a central difference may lead from one
/// selection to another. The reference refuses inputs with closer scores than this; f32 errs by 1e-6 here.
constexpr double kGap = 1e-4;

Function selection(std::int64_t k) {
  return [k](std::span<const Variable> x) {
    const ProductKeySelection selected = product_key_top_k(x[0], x[1], k);
    return std::array{selected.scores, x[0].tape().constant(selected.ids)};
  };
}
Reference selection_reference(std::int64_t k) {
  return [k](std::span<const Array64> x) {
    const reference::ProductKeyTopK selected = reference::product_key_top_k(x[0], x[1], k, kGap);
    return std::vector{selected.scores, selected.ids};
  };
}

const std::vector<Role> kRoles{Role::activation, Role::matrix};
/// In bf16 the half-scores' gradients are rounded to be operands, and the query's gradient is as a result. Where no
/// sub-key is selected twice, the former are cotangents, which have been rounded already.
constexpr Tolerance kTolerance{.bf16 = 2 * kRounding, .bf16_sums = kRounding}, kWithoutSums{.bf16 = kRounding};

const OpCases cases{
    // Two sets; n = 5, k = 3, H = 2, dq = 4 are those of the gradient check [product-key 10], test 6. Then k above
    // n,
    // and a single slot.
    OpCase{.name = "product_key_top_k",
           .inputs = {{normal({7, 8}), normal({2, 2, 5, 2})},
                      {normal({4, 2}), normal({1, 2, 2, 1})},
                      {normal({2, 18}), normal({3, 2, 70, 3})},
                      {normal({33, 16}), normal({1, 2, 16, 8})}},
           .function = selection(3),
           .reference = selection_reference(3),
           .tolerance = kTolerance,
           .roles = kRoles,
           .errors = {{.inputs = {normal({3, 9}), normal({2, 2, 5, 2})}, .contains = {"[3, 9]", "[2, 2, 5, 2]", "8"}},
                      {.inputs = {normal({3, 2, 4}), normal({2, 2, 5, 2})}, .contains = {"[R, H dq]", "[3, 2, 4]"}},
                      {.inputs = {normal({3, 8}), normal({2, 4, 5, 1})}, .contains = {"F = 1, 2 or 3", "[2, 4, 5, 1]"}},
                      {.inputs = {normal({3, 8}), normal({8, 5, 1})}, .contains = {"[H, F, n, dq / F]", "[8, 5, 1]"}},
                      {.inputs = {normal({3, 0}), normal({2, 2, 5, 0})}, .contains = {"none empty", "[2, 2, 5, 0]"}},
                      {.inputs = {normal({3, 8}), wide_index({2, 2, 5, 2}, 2)}, .contains = {"keys", "i64"}},
                      {.inputs = {normal({3, 2}), normal({1, 2, 1, 1})}, .contains = {"n^F = 1", "n = 1", "got 3"}},
                      {.inputs = {normal({3, 8}), normal({2, 2, 5, 2})},
                       .contains = {"k must be 1 to n^F = 25", "2 sets", "got 0"},
                       .function = selection(0)},
                      {.inputs = {normal({3, 8}), normal({2, 2, 5, 2})},
                       .contains = {"n^F = 25", "got 26"},
                       .function = selection(26)}}},
    // More slots than a warp has lanes, many of them with the same sub-keys.
    OpCase{.name = "product_key_top_k, many slots",
           .inputs = {{normal({2, 8}), normal({2, 2, 7, 2})}},
           .function = selection(40),
           .reference = selection_reference(40),
           .tolerance = kTolerance,
           .roles = kRoles},
    OpCase{.name = "product_key_top_k, one slot",
           .inputs = {{normal({5, 6}), normal({3, 2, 6, 1})}, {normal({1, 1}), normal({1, 1, 1, 1})}},
           .function = selection(1),
           .reference = selection_reference(1),
           .tolerance = kWithoutSums,
           .roles = kRoles},
    OpCase{.name = "product_key_top_k, three sets",
           .inputs = {{normal({3, 12}), normal({2, 3, 4, 2})}, {normal({2, 3}), normal({1, 3, 2, 1})}},
           .function = selection(6),
           .reference = selection_reference(6),
           .tolerance = kTolerance,
           .roles = kRoles},
    OpCase{.name = "product_key_top_k, flat",
           .inputs = {{normal({3, 6}), normal({2, 1, 331, 3})}, {normal({9, 5}), normal({1, 1, 5, 5})}},
           .function = selection(5),
           .reference = selection_reference(5),
           .tolerance = kWithoutSums,
           .roles = kRoles},
};

struct TopKFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Tensor tensor(const Shape& shape, std::vector<double> numbers, DType dtype = DType::f64) {
    const Input input = values(shape, std::move(numbers));
    return to_device(backend, memory, input_values("top k", {input}, DType::f64)[0], input, dtype);
  }
  Tensor random(const Shape& shape, const char* name) {
    return to_device(backend, memory, input_values(name, {normal(shape)}, DType::f32)[0], normal(shape), DType::f64);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
  std::vector<double> gradient(const Variable& x) { return host(tape.gradient(x)); }
};

void check_near(const std::vector<double>& got, const std::vector<double>& wanted, double margin = 1e-9) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(margin).epsilon(0));
}

/// [product-key 10], test 1. The values of slots are their ids, so the weights' gradients are as well.
TEST_CASE_METHOD(TopKFixture, "product_key_top_k: three sub-keys in each set, two slots", "[ops]") {
  const Variable query = tape.leaf(tensor({1, 2}, {1, 1}));
  const Variable keys = tape.leaf(tensor({1, 2, 3, 1}, {1, 2, 3, 1, -1, 0.5}));
  const ProductKeySelection selected = product_key_top_k(query, keys, 2);
  CHECK(selected.ids.dtype() == DType::i64);
  CHECK(host(selected.ids) == std::vector<double>{6, 8});
  CHECK(host(selected.scores.value()) == std::vector<double>{4, 3.5});
  const Variable weights = softmax(selected.scores);
  check_near(host(weights.value()), {0.6224593312, 0.3775406688});
  tape.backward(weights, tensor({1, 1, 2}, {6, 8}));
  check_near(gradient(query), {0, -0.2350037122});
  check_near(gradient(keys), {0, 0, 0, -0.4700074244, 0, 0.4700074244});
}

/// [product-key 10], test 7: softmax's gradients sum to zero, so what all selected slots share has none.
TEST_CASE_METHOD(TopKFixture, "product_key_top_k: what all scores share", "[ops]") {
  const std::int64_t rows = 6, heads = 2, n = 9, width = 3, k = 4;
  const Tensor query_values = random({rows, heads * 2 * width}, "queries"),
               key_values = random({heads, 2, n, width}, "keys");
  std::vector<double> moved = host(key_values);
  const std::vector<double> by{0.5, -1.25, 2};  // added to every row of the first sets
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t i = 0; i < n * width; ++i)
      moved[static_cast<std::size_t>(head * 2 * n * width + i)] += by[static_cast<std::size_t>(i % width)];

  const auto weights_and_ids = [&](const Variable& query, const Tensor& keys) {
    const ProductKeySelection selected = product_key_top_k(query, tape.constant(keys), k);
    return std::pair{softmax(selected.scores), selected.ids};
  };
  const Variable query = tape.leaf(query_values);
  const auto [weights, ids] = weights_and_ids(query, key_values);
  const auto [same_weights, same_ids] = weights_and_ids(query, tensor({heads, 2, n, width}, moved));
  CHECK(host(ids) == host(same_ids));
  check_near(host(weights.value()), host(same_weights.value()), 1e-5);

  const Variable scores =
      tape.leaf(product_key_top_k(tape.constant(query_values), tape.constant(key_values), k).scores.value());
  tape.backward(softmax(scores), random({rows, heads, k}, "cotangent"));
  const std::vector<double> dscores = gradient(scores);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows * heads); ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(k); ++j) sum += dscores[row * static_cast<std::size_t>(k) + j];
    CHECK(sum == Approx(0).margin(1e-12));
  }
}

TEST_CASE_METHOD(TopKFixture, "product_key_top_k: with one slot of weight 1 nothing is learned", "[ops]") {
  const Variable query = tape.leaf(random({5, 8}, "queries")), keys = tape.leaf(random({2, 2, 6, 2}, "keys"));
  tape.backward(softmax(product_key_top_k(query, keys, 1).scores), random({5, 2, 1}, "cotangent"));
  for (const Variable& x : {query, keys})
    for (const double value : gradient(x)) CHECK(value == 0);
}

TEST_CASE_METHOD(TopKFixture, "product_key_top_k: no rows", "[ops]") {
  const Variable query = tape.leaf(tensor({0, 4}, {})), keys = tape.leaf(random({1, 2, 3, 2}, "keys"));
  const ProductKeySelection selected = product_key_top_k(query, keys, 2);
  CHECK(selected.scores.shape() == Shape{0, 1, 2});
  CHECK(selected.ids.shape() == Shape{0, 1, 2});
  tape.backward({sum(selected.scores)});
  CHECK(gradient(query).empty());
  CHECK(gradient(keys) == std::vector<double>(12, 0));
}

/// One call over rows of several tiles, against one call for each part of the rows.
TEST_CASE("product_key_top_k: tiles of rows", "[ops]") {
  Backend& cpu = *available_backends().front();
  const std::int64_t rows = 40, n = 45000, k = 3;  // 16 rows of a tile are 11 MiB
  GuardedAllocator memory(cpu);
  Step step(cpu, memory);
  const auto random = [&](const Shape& shape, const char* name) {
    return to_device(cpu, memory, input_values(name, {normal(shape)}, DType::f64)[0], normal(shape), DType::f64);
  };
  const Tensor query = random({rows, 4}, "queries"), keys = random({1, 2, n, 2}, "keys"),
               cotangent = random({rows, 1, k}, "cotangent");
  struct Result {
    std::vector<double> scores, ids, dquery, dkeys;
  };
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    Tape tape(step);
    const Variable x = tape.leaf(query.rows(begin, end)), table = tape.leaf(keys);
    const ProductKeySelection selected = product_key_top_k(x, table, k);
    Result result{to_host(cpu, selected.scores.value()).data, to_host(cpu, selected.ids).data, {}, {}};
    Tensor of_rows = step.empty({end - begin, 1, k}, DType::f64);
    std::copy_n(cotangent.data<const double>() + begin * k, (end - begin) * k, of_rows.data<double>());
    tape.backward(selected.scores, of_rows);
    result.dquery = to_host(cpu, tape.gradient(x)).data;
    result.dkeys = to_host(cpu, tape.gradient(table)).data;
    return result;
  };
  const Result whole = run(0, rows);
  Result parts = run(0, 7);
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{7, 20}, {20, rows}}) {
    const Result part = run(begin, end);
    parts.scores.insert(parts.scores.end(), part.scores.begin(), part.scores.end());
    parts.ids.insert(parts.ids.end(), part.ids.begin(), part.ids.end());
    parts.dquery.insert(parts.dquery.end(), part.dquery.begin(), part.dquery.end());
    for (std::size_t i = 0; i < parts.dkeys.size(); ++i) parts.dkeys[i] += part.dkeys[i];
  }
  CHECK(whole.ids == parts.ids);
  const auto as_array = [](const std::vector<double>& x) {
    return std::array{Array64{{static_cast<std::int64_t>(x.size())}, x}};
  };
  CHECK(compare_elements("scores", as_array(whole.scores), as_array(parts.scores), 1e-12).empty());
  CHECK(compare_elements("dquery", as_array(whole.dquery), as_array(parts.dquery), 1e-12).empty());
  CHECK(compare_elements("dkeys", as_array(whole.dkeys), as_array(parts.dkeys), 1e-12).empty());
}

/// Gives addresses and no memory.
struct NoMemory final : Allocator {
  alignas(kAlignment) std::byte place[1] = {};
  void* allocate(std::size_t) override { return place; }
  void free(void*, std::size_t) noexcept override {}
};

TEST_CASE("product_key_top_k: ids that do not fit are refused", "[ops]") {
  NoMemory memory;
  Step step(*available_backends().front(), memory);
  Tape tape(step);
  const auto select = [&](std::int64_t sets, std::int64_t n) {
    return product_key_top_k(tape.constant(step.empty({0, sets}, DType::f32)),
                             tape.constant(step.empty({1, sets, n, 1}, DType::f32)), 2);
  };
  CHECK_THROWS_WITH(select(3, 2097152), ContainsSubstring("64 bits, got n^F = 2097152^3"));
  CHECK(select(3, 2097151).ids.shape() == Shape{0, 1, 2});
  CHECK_THROWS_WITH(select(1, std::int64_t{1} << 31), ContainsSubstring("at most 2147483647 keys, got 2147483648"));
}

}  // namespace
}  // namespace engram::harness::product_key_top_k_test
