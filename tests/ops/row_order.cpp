/// Gradients of a table's rows: the order of the uses and their sums ([product-key 2.2, 2.3]).

#include "core/kernels/row_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/functions/weighted_rows.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/arena.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::row_order_test {
namespace {

std::vector<double> random_ids(std::int64_t count, std::int64_t below, const std::string& name) {
  return input_values(name, {wide_index({count}, below)}, DType::f64)[0].data;
}

struct OrderFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  Tensor tensor(Shape shape, const std::vector<double>& numbers, DType dtype = DType::f32) {
    const Input input = dtype == DType::i64 ? wide_integers(shape, numbers) : values(shape, numbers);
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, input, dtype).view(shape);
  }
  Tensor normal_numbers(Shape shape, const std::string& name) {
    return tensor(shape, input_values(name, {normal(shape)}, DType::f32)[0].data);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }

  /// Against a stable sort by id.
  void check_order(const std::vector<double>& ids, const RowOrder& order) {
    std::vector<std::size_t> uses(ids.size());
    std::iota(uses.begin(), uses.end(), std::size_t{0});
    std::ranges::stable_sort(uses, {}, [&](std::size_t use) { return ids[use]; });
    const auto count = static_cast<double>(ids.size());
    std::vector<double> rows, starts;
    for (std::size_t place = 0; place < uses.size(); ++place) {
      if (place > 0 && ids[uses[place]] == ids[uses[place - 1]]) continue;
      rows.push_back(ids[uses[place]]);
      starts.push_back(static_cast<double>(place));
    }
    CHECK(host(order.count) == std::vector<double>{static_cast<double>(rows.size())});
    rows.resize(static_cast<std::size_t>(order.rows.count()), -1);
    starts.resize(rows.size() + 1, count);
    CHECK(host(order.rows) == rows);
    CHECK(host(order.starts) == starts);
    CHECK(host(order.uses) == std::vector<double>(uses.begin(), uses.end()));
  }
};

TEST_CASE_METHOD(OrderFixture, "row order: by row, and by number of the use within a row", "[rows]") {
  struct Sizes {
    std::int64_t uses, rows;
  };
  for (const Sizes& sizes : {Sizes{0, 3}, Sizes{1, 1}, Sizes{3, 1}, Sizes{300, 5}, Sizes{2048, 2049}, Sizes{4099, 2048},
                             Sizes{70001, 300}, Sizes{70001, 100000000}, Sizes{1000, std::int64_t{1} << 40}}) {
    CAPTURE(sizes.uses, sizes.rows);
    const std::vector<double> ids = random_ids(sizes.uses, sizes.rows, "ids");
    check_order(ids, ordered(step, tensor({sizes.uses, 1}, ids, DType::i64), sizes.rows));
  }
}

TEST_CASE_METHOD(OrderFixture, "row order: rows are stamped with the step that used them last", "[rows]") {
  Tensor stamps = step.empty({9000}, DType::i32);
  kernels::fill(step, stamps, 0);
  std::vector<double> wanted(9000);
  const std::vector<double> of_steps[] = {
      random_ids(20000, 9000, "first"), {8999, 3, 3, 0}, random_ids(70, 9, "third")};
  for (std::size_t i = 0; i < 3; ++i) {
    // Steps need not follow one another.
    step.begin({.step = 10 * i + 1});
    const auto count = static_cast<std::int64_t>(of_steps[i].size());
    const RowOrder order = ordered(step, tensor({count, 1}, of_steps[i], DType::i64), 9000);
    kernels::stamp_rows(step, order, stamps);
    for (const double row : of_steps[i]) wanted[static_cast<std::size_t>(row)] = static_cast<double>(10 * i + 2);
    CHECK(host(stamps) == wanted);
  }
}

TEST_CASE_METHOD(OrderFixture, "row order: can be captured, and sorts what lies there when it is replayed", "[rows]") {
  HeapAllocator heap(backend);
  Arena arena(heap);
  Step captured(backend, arena);
  const std::vector<double> first = random_ids(700, 90, "first"), second = random_ids(700, 90, "second");
  const Tensor ids = tensor({7, 100}, first, DType::i64), others = tensor({7, 100}, second, DType::i64);
  RowOrder order = ordered(captured, ids, 90);  // the arena takes its memory now
  const auto replay = backend.capture([&] { kernels::order_row_uses(captured, ids, 90, order); });
  check_order(first, order);
  backend.copy(ids.raw(), others.raw(), ids.bytes(), CopyKind::device_to_device);
  replay->run();
  check_order(second, order);
}

// [product-key 10], test 17.
TEST_CASE_METHOD(OrderFixture, "row order: rows that uniform reads touch", "[rows]") {
  constexpr std::int64_t kRows = 262144, kUses = 1048576;
  const Tensor ids = tensor({kUses / 128, 128}, random_ids(kUses, kRows, "uniform"), DType::i64);
  CHECK(host(ordered(step, ids, kRows).count)[0] == Approx(257343).epsilon(0.01));
}

/// Row u is used lengths[u] times, by results in turn, the rows taking turns too.
std::vector<double> ids_of_lengths(const std::vector<std::int64_t>& lengths) {
  std::vector<double> ids;
  for (std::int64_t k = 0; k < *std::ranges::max_element(lengths); ++k)
    for (std::size_t u = 0; u < lengths.size(); ++u)
      if (k < lengths[u]) ids.push_back(static_cast<double>(u));
  return ids;
}

TEST_CASE_METHOD(OrderFixture, "row sums: pieces of 256 uses in order, and their sums in pairs", "[rows]") {
  constexpr double kLarge = 0x1p24;  // the first number that does not change when 1 is added
  const std::vector<std::int64_t> lengths{1, 255, 256, 257, 1000, 70000};
  const std::vector<double> ids = ids_of_lengths(lengths);
  const auto count = static_cast<std::int64_t>(ids.size());
  // Of every row: column 0 has ones behind a large number, column 1 one in each piece but the first.
  std::vector<double> numbers, uses(lengths.size(), 0);
  for (const double id : ids) {
    const double use = uses[static_cast<std::size_t>(id)]++;
    numbers.push_back(use == 0 ? kLarge : 1);
    numbers.push_back(use == 0 ? kLarge : std::fmod(use, 256) == 0 ? 1 : 0);
  }
  const std::vector<double> wanted{kLarge, kLarge, kLarge,       kLarge,     kLarge,         kLarge,
                                   kLarge, kLarge, kLarge + 744, kLarge + 2, kLarge + 69744, kLarge + 272};
  const Tensor rows = tensor({count, 1}, ids, DType::i64);
  const RowUses all{rows, tensor({count, 1}, std::vector<double>(ids.size(), 1)), tensor({count, 2}, numbers)};
  const RowOrder order = ordered(step, rows, 7);
  check_order(ids, order);
  Tensor sums = step.empty({7, 2}, DType::f32);
  kernels::sum_row_uses(step, all, order, sums);
  std::vector<double> with_rest = wanted;
  with_rest.insert(with_rest.end(), {0, 0});
  CHECK(host(sums) == with_rest);
  Tensor table = tensor({7, 2}, std::vector<double>(14, 2));
  kernels::add_row_uses(step, all, order, {table, Write::add});
  for (double& number : with_rest) number += 2;
  CHECK(host(table) == with_rest);
}

// [product-key 10], test 9, first half: duplicates are summed before anything else is done with them.
TEST_CASE_METHOD(OrderFixture, "row sums: two reads of one row by one result", "[rows]") {
  const RowUses uses{tensor({1, 2}, {3, 3}, DType::i64), tensor({1, 2}, {1, 1}), tensor({1, 3}, {0.5, -2, 7})};
  Tensor sums = step.empty({2, 3}, DType::f32);
  kernels::sum_row_uses(step, uses, ordered(step, uses.ids, 5), sums);
  CHECK(host(sums) == std::vector<double>{1, -4, 14, 0, 0, 0});
}

/// Reads of a table with a hot row, as a tape sees them.
struct Reads : OrderFixture {
  static constexpr std::int64_t kRows = 50, kResults = 600, kReads = 9, kWidth = 37;
  Parameter table{{kRows, kWidth}, {Initializer::Kind::normal, 1}, Gradient::rows};
  ParameterStore store;
  Tensor ids, weights, cotangent;

  Reads() {
    store.add("table", table);
    store.place(backend, DType::f32, 3);
    std::vector<double> numbers = random_ids(kResults * kReads, kRows, "reads");
    for (std::size_t i = 0; i < numbers.size(); i += 5) numbers[i] = 7;
    ids = tensor({kResults, kReads}, numbers, DType::i64);
    weights = normal_numbers({kResults, kReads}, "weights");
    cotangent = normal_numbers({kResults, kWidth}, "cotangent");
  }
  ~Reads() { store.clear_row_gradients(); }

  /// The gradient as a tensor of the table's size, of pieces of the batch of `tile` results each.
  std::vector<double> densified(std::int64_t tile) {
    for (std::int64_t begin = 0; begin < kResults; begin += tile) {
      const std::int64_t end = std::min(kResults, begin + tile);
      Tape tape(step);
      const Variable y =
          weighted_rows(tape.parameter(table), ids.rows(begin, end),
                        begin % 2 == 0 ? tape.constant(weights.rows(begin, end)) : tape.leaf(weights.rows(begin, end)));
      tape.backward(y, cotangent.rows(begin, end));
    }
    CHECK(table.row_gradient().parts.size() == static_cast<std::size_t>((kResults + tile - 1) / tile));
    const RowGradient::Part whole = joined(step, table.row_gradient(), kRows);
    CHECK(whole.uses.count() == kResults * kReads);
    Tensor sums = step.empty({whole.order.rows.count(), kWidth}, DType::f32);
    kernels::sum_row_uses(step, whole.uses, whole.order, sums);
    const std::vector<double> rows = host(whole.order.rows), numbers = host(sums);
    std::vector<double> dense(kRows * kWidth, 0);
    for (std::size_t u = 0; u < rows.size(); ++u)
      if (rows[u] >= 0)
        std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(u) * kWidth, kWidth,
                    dense.begin() + static_cast<std::ptrdiff_t>(rows[u]) * kWidth);
    store.clear_row_gradients();
    return dense;
  }
  /// That of a tensor which is no table.
  std::vector<double> dense() {
    Tape tape(step);
    const Variable values = tape.leaf(table.value()), of_weights = tape.leaf(weights);
    tape.backward(weighted_rows(values, ids, of_weights), cotangent);
    std::vector<double> both = host(tape.gradient(values));
    const std::vector<double> more = host(tape.gradient(of_weights));
    both.insert(both.end(), more.begin(), more.end());
    return both;
  }
};

// [product-key 10], test 8.
TEST_CASE_METHOD(Reads, "row gradient: the bits of the dense one, for every number of threads and cut", "[rows]") {
  const int before = backend.threads();
  const std::vector<double> wanted = dense();
  for (const int threads : {1, 2, 8, 8}) {
    CAPTURE(threads);
    backend.set_threads(threads);
    const std::vector<double> again = dense();
    CHECK(again == wanted);
    for (const std::int64_t tile : {600, 250, 101}) {
      CAPTURE(tile);
      CHECK(densified(tile) == std::vector<double>(again.begin(), again.begin() + kRows * kWidth));
    }
  }
  backend.set_threads(before);
}

TEST_CASE_METHOD(Reads, "row gradient: parts that cannot be joined", "[rows]") {
  RowGradient gradient;
  CHECK_FALSE(joined(step, gradient, kRows).uses);
  gradient.parts.push_back({.uses = {ids, weights, cotangent}, .order = {}});
  gradient.parts.push_back({.uses = {ids.view({kResults * kReads, 1}), weights.view({kResults * kReads, 1}),
                                     normal_numbers({kResults * kReads, kWidth}, "more")},
                            .order = {}});
  CHECK_THROWS_WITH(joined(step, gradient, kRows), ContainsSubstring("equal numbers of uses per result, got 9 and 1"));
  gradient.parts[1] = {.uses = {ids, weights, normal_numbers({kResults, 2}, "narrow")}, .order = {}};
  CHECK_THROWS_WITH(joined(step, gradient, kRows), ContainsSubstring("one width and dtype, got 37 f32 and 2 f32"));
}

}  // namespace
}  // namespace engram::harness::row_order_test
