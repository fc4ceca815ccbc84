/// The selection of slots from given half-scores, and the scatter of gradients, on every device: order, ties, NaN, and
/// ids beyond 32 bits ([product-key 3, 9, 10]).

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/kernels/product_key_top_k.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/reference/product_keys.hpp"

namespace engram::harness::product_key_select_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

struct SelectFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  std::mt19937_64 random{11};

  struct Selected {
    std::vector<double> scores;
    std::vector<std::int64_t> ids;
  };

  Tensor tensor(const Shape& shape, std::vector<double> numbers, DType dtype) {
    const Input input = values(shape, std::move(numbers));
    return to_device(backend, memory, input_values("select", {input}, DType::f64)[0], input, dtype);
  }
  Selected select(const Shape& shape, const std::vector<double>& half_scores, std::int64_t k, DType dtype) {
    Tensor scores = step.empty({shape[0], shape[1], k}, dtype), ids = step.empty(scores.shape(), DType::i64);
    kernels::product_key_select(step, tensor(shape, half_scores, dtype), scores, ids);
    std::vector<std::int64_t> slots(static_cast<std::size_t>(ids.count()));
    backend.copy(slots.data(), ids.raw(), ids.bytes(), CopyKind::device_to_host);
    return {to_host(backend, scores).data, slots};
  }
  std::vector<double> numbers(std::int64_t count, bool ties) {
    std::normal_distribution<double> normal;
    std::vector<double> all(static_cast<std::size_t>(count));
    for (double& x : all) x = ties ? static_cast<double>(random() % 3) : static_cast<float>(normal(random));
    return all;
  }
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  }

  /// Against the definition, in T, for every row and head.
  template <class T>
  void check(const Shape& shape, const std::vector<double>& half_scores, std::int64_t k) {
    CAPTURE(backend.device(), shape, k, dtype_of<T>);
    const Selected got = select(shape, half_scores, k, dtype_of<T>);
    std::vector<double> scores;
    std::vector<std::int64_t> ids;
    auto next = half_scores.begin();
    for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
      reference::HalfScores<T> sets(static_cast<std::size_t>(shape[2]));
      for (std::vector<T>& set : sets)
        for (std::int64_t i = 0; i < shape[3]; ++i) set.push_back(static_cast<T>(*next++));
      const auto wanted = reference::sort_grid(sets, k);  // as sorting all slots, see tests/reference
      scores.insert(scores.end(), wanted.scores.begin(), wanted.scores.end());
      ids.insert(ids.end(), wanted.ids.begin(), wanted.ids.end());
    }
    CHECK(got.ids == ids);
    CHECK(got.scores == scores);
  }
};

TEST_CASE_METHOD(SelectFixture, "product_key_select: as sorting, also with many equal scores", "[ops]") {
  const int trials = backend.device().kind == DeviceKind::cpu ? 300 : 24;
  for (int trial = 0; trial < trials; ++trial) {
    const std::int64_t sets = 1 + trial % 3, n = 1 + below(sets == 3 ? 12 : 64), heads = 1 + below(3);
    const std::int64_t slots = sets == 1 ? n : sets == 2 ? n * n : n * n * n;
    const std::int64_t k = 1 + below(trial % 4 == 3 ? std::min<std::int64_t>(slots, 200) : n);
    const Shape shape{2, heads, sets, n};
    const std::vector<double> half_scores = numbers(shape.count(), trial / 2 % 2 == 1);
    if (trial % 5 == 4)
      check<double>(shape, half_scores, k);
    else
      check<float>(shape, half_scores, k);
  }
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: sizes that are used", "[ops]") {
  const bool cpu = backend.device().kind == DeviceKind::cpu;
  for (const std::int64_t k : {8, 32, 64})
    for (const bool ties : {false, true}) check<float>({2, 1, 2, 512}, numbers(2 * 1024, ties), k);
  if (!cpu) return;
  check<float>({20, 2, 2, 512}, numbers(20 * 2 * 1024, false), 32);
  check<double>({3, 1, 2, 4096}, numbers(3 * 8192, false), 32);
  check<float>({2, 1, 3, 465}, numbers(2 * 3 * 465, false), 32);
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: long lists, of all equal scores, ascending and descending",
                 "[ops]") {
  const std::int64_t n = backend.device().kind == DeviceKind::cpu ? 100000 : 9000;
  std::vector<double> ascending(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<double>(i) / 64 - 20;
  const std::vector<double> descending(ascending.rbegin(), ascending.rend());
  for (const std::int64_t k : {1, 31, 300}) {
    check<float>({1, 1, 1, n}, std::vector<double>(static_cast<std::size_t>(n), 1.0), k);
    check<float>({1, 1, 1, n}, ascending, k);
    check<float>({1, 1, 1, n}, descending, k);
    check<float>({1, 1, 1, n}, numbers(n, false), k);
  }
  check<double>({1, 1, 1, n}, numbers(n, true), 77);
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: more slots than fit into shared memory", "[ops]") {
  check<float>({1, 1, 2, 900}, numbers(2 * 900, false), 870);  // just too many
  check<double>({1, 2, 3, 16}, numbers(2 * 3 * 16, false), 2000);
  check<float>({2, 1, 2, 40}, numbers(2 * 2 * 40, true), 1600);
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: sums that rounding makes equal are in the order of ranks",
                 "[ops]") {
  const std::vector<double> half_scores{0.25, 0.5, 16777216, 0};
  CHECK(select({1, 1, 2, 2}, half_scores, 1, DType::f32).ids[0] / 2 == 1);
  CHECK(select({1, 1, 2, 2}, half_scores, 4, DType::f32).ids == std::vector<std::int64_t>{2, 0, 3, 1});
  // (s1 + s2) + s3: the first sum is rounded.
  check<float>({1, 1, 3, 2}, {0.25, 0.5, 16777216, 0, 1, -16777216}, 8);
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: NaN is below every number, 0 and -0 are equal", "[ops]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    CHECK(select({1, 1, 1, 6}, {kNaN, -kInf, 3, -kNaN, kInf, -1e30}, 6, dtype).ids ==
          std::vector<std::int64_t>{4, 2, 5, 1, 0, 3});
    CHECK(select({1, 1, 1, 3}, {-0.0, 0.0, -0.0}, 3, dtype).ids == std::vector<std::int64_t>{0, 1, 2});
    // A query of NaN: ids are in range and distinct, and the scores tell.
    const std::int64_t n = 100, k = 32;
    const Selected all = select({1, 1, 2, n}, std::vector<double>(200, kNaN), k, dtype);
    CHECK(std::set(all.ids.begin(), all.ids.end()).size() == 32);
    for (std::size_t j = 0; j < all.ids.size(); ++j) {
      CHECK((all.ids[j] >= 0 && all.ids[j] < n * n));
      CHECK(std::isnan(all.scores[j]));
    }
    // NaN in one set alone.
    std::vector<double> half_scores = numbers(2 * n, false);
    std::fill(half_scores.begin(), half_scores.begin() + n, kNaN);
    half_scores[17] = 1;
    const Selected some = select({1, 1, 2, n}, half_scores, k, dtype);
    for (const std::int64_t id : some.ids) CHECK(id / n == 17);
    // More NaN than a list may have so that k numbers are left, among them -infinity; and just as many.
    for (const std::int64_t left : {std::int64_t{5}, k - 1, k, k + 1}) {
      std::vector<double> few(1000, kNaN);
      for (std::int64_t i = 0; i < left; ++i) few[static_cast<std::size_t>(i * 29 + 3)] = i % 4 == 0 ? -kInf : -0.5;
      const Selected numbers_first = select({1, 1, 1, 1000}, few, k, dtype);
      std::vector<std::int64_t> wanted(1000);
      std::iota(wanted.begin(), wanted.end(), 0);
      std::ranges::stable_sort(wanted, [&few](std::int64_t a, std::int64_t b) {
        const double x = few[static_cast<std::size_t>(a)], y = few[static_cast<std::size_t>(b)];
        return std::isnan(y) ? !std::isnan(x) : x > y;
      });
      wanted.resize(static_cast<std::size_t>(k));
      CHECK(numbers_first.ids == wanted);
    }
    // Infinities of both signs meet.
    std::vector<double> infinite(static_cast<std::size_t>(n), kInf);
    infinite.insert(infinite.end(), static_cast<std::size_t>(n), -kInf);
    const Selected meet = select({1, 1, 2, n}, infinite, k, dtype);
    CHECK(std::set(meet.ids.begin(), meet.ids.end()).size() == 32);
    for (const std::int64_t id : meet.ids) CHECK((id >= 0 && id < n * n));
  }
}

TEST_CASE_METHOD(SelectFixture, "product_key_select: ids beyond 32 bits", "[ops]") {
  const std::int64_t n = 70000;
  for (const std::int64_t sets : {2, 3}) {
    std::vector<double> half_scores(static_cast<std::size_t>(sets * n), 0.0);
    for (std::int64_t set = 0; set < sets; ++set) half_scores[static_cast<std::size_t>((set + 1) * n - 1)] = 5;
    half_scores[static_cast<std::size_t>(sets * n - 2)] = 4;
    const std::int64_t last = sets == 2 ? n * n - 1 : n * n * n - 1;
    const Selected selected = select({1, 1, sets, n}, half_scores, 2, DType::f32);
    CHECK(selected.ids == std::vector<std::int64_t>{last, last - 1});

    // And back to sub-keys.
    Tensor ids = step.empty({1, 1, 2}, DType::i64), gradient = step.empty({1, 1, sets, n}, DType::f32);
    backend.copy(ids.raw(), selected.ids.data(), ids.bytes(), CopyKind::host_to_device);
    kernels::product_key_scatter(step, tensor({1, 1, 2}, {2, 0.5}, DType::f32), ids, gradient);
    const std::vector<double> got = to_host(backend, gradient).data;
    std::vector<double> wanted(got.size(), 0.0);
    for (std::int64_t set = 0; set < sets; ++set)
      wanted[static_cast<std::size_t>((set + 1) * n - 1)] = set + 1 == sets ? 2 : 2.5;
    wanted[static_cast<std::size_t>(sets * n - 2)] = 0.5;
    CHECK(got == wanted);
  }
}

TEST_CASE_METHOD(SelectFixture, "product_key_scatter: sums of one sub-key are in the order of the slots", "[ops]") {
  // 100 slots, all with sub-key 1 of the first set: in f32 the sum depends on the order.
  const std::int64_t k = 100, n = 128;
  std::vector<double> dscores = numbers(k, false);
  dscores[0] = 1e6, dscores[50] = -1e6;
  std::vector<std::int64_t> slots;
  std::vector<float> wanted(static_cast<std::size_t>(2 * n), 0.0f);
  for (std::int64_t j = 0; j < k; ++j) {
    slots.push_back(n + j);
    wanted[1] += static_cast<float>(dscores[static_cast<std::size_t>(j)]);
    wanted[static_cast<std::size_t>(n + j)] = static_cast<float>(dscores[static_cast<std::size_t>(j)]);
  }
  Tensor ids = step.empty({1, 1, k}, DType::i64), gradient = step.empty({1, 1, 2, n}, DType::f32);
  backend.copy(ids.raw(), slots.data(), ids.bytes(), CopyKind::host_to_device);
  kernels::product_key_scatter(step, tensor({1, 1, k}, dscores, DType::f32), ids, gradient);
  CHECK(to_host(backend, gradient).data == std::vector<double>(wanted.begin(), wanted.end()));
}

}  // namespace
}  // namespace engram::harness::product_key_select_test
