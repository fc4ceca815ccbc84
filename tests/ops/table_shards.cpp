/// A table in parts, as several machines would hold it, against the whole one: [product-key 7.5] and
/// test 18. All parts are tables of one process here; what would be sent between machines is copied on the host.

#include <algorithm>
#include <cmath>

#include "core/kernels/weighted_rows.hpp"
#include "tests/ops/table_fixture.hpp"

namespace engram::harness::table_shards_test {
namespace {

constexpr std::int64_t kRows = 24, kResults = 9, kReads = 7, kSteps = 10, kVectorBytes = 16;

enum class Cut : std::uint8_t { columns, rows };

/// The reads of one step.
struct Reads {
  std::vector<std::int64_t> ids;  // [kResults, kReads]
  std::vector<double> weights;    // [kResults, kReads]
};

/// What `parts` tables hold of one table [kRows, width]: each the columns p width / parts to before (p + 1) width /
/// parts, or the rows whose number is p modulo `parts`.
struct Shards {
  TableFixture& on;
  DType dtype;
  std::int64_t width;
  Cut cut;
  std::int64_t parts;
  std::vector<AdamTable> tables;

  Shards(TableFixture& fixture, const Array64& values, DType stored, Cut way, std::int64_t count)
      : on(fixture), dtype(stored), width(values.shape[1]), cut(way), parts(count) {
    for (std::int64_t p = 0; p < parts; ++p) {
      std::vector<double> numbers(static_cast<std::size_t>(rows() * columns()));
      for_elements(p, [&](std::int64_t row, std::int64_t c, std::size_t place) { numbers[place] = values.at(row, c); });
      AdamTable table = on.new_table(rows(), columns(), dtype, TableMode::lazy);
      table.columns = held(p);
      table.values = numbers_to(on.backend, on.memory, numbers, {rows(), columns()}, dtype);
      tables.push_back(table);
    }
  }
  std::int64_t columns() const { return cut == Cut::columns ? width / parts : width; }
  TableColumns held(std::int64_t p) const {
    return cut == Cut::columns ? TableColumns{p * columns(), columns(), width} : TableColumns::all(width);
  }
  /// A part of the rows ends with one of zeros: reads that belong to other parts go there, with the weight zero.
  std::int64_t rows() const { return cut == Cut::columns ? kRows : kRows / parts + 1; }

  /// The whole table.
  Array64 joined(const Tensor AdamTable::*tensor) const {
    Array64 whole = reference::zeros({kRows, width});
    for (std::int64_t p = 0; p < parts; ++p) {
      const Array64 part = on.read(tables[static_cast<std::size_t>(p)].*tensor);
      for_elements(p,
                   [&](std::int64_t row, std::int64_t c, std::size_t place) { whole.at(row, c) = part.data[place]; });
    }
    return whole;
  }
  /// Columns side by side, or the sum of what the owners of rows found.
  Array64 forward(const Reads& reads) const {
    Array64 whole = reference::zeros({kResults, width});
    for (std::int64_t p = 0; p < parts; ++p) {
      const RowUsesOnHost own = uses_of(p, reads, whole);
      Tensor y(Shape{kResults, columns()}, dtype, on.backend.device(), on.memory);
      const RowGradients device = on.on_device(own, rows(), dtype);
      kernels::weighted_rows_forward(on.step, tables[static_cast<std::size_t>(p)].values, device.uses.ids,
                                     device.uses.weights, y);
      const Array64 part = on.read(y);
      for (std::int64_t r = 0; r < kResults; ++r)
        for (std::int64_t c = 0; c < columns(); ++c) {
          double& to = whole.at(r, cut == Cut::columns ? p * columns() + c : c);
          to = dtype == DType::f64 ? to + part.at(r, c)
                                   : static_cast<double>(static_cast<float>(to) + static_cast<float>(part.at(r, c)));
        }
    }
    return whole;
  }
  /// The gradient of the weights: over columns a sum of parts, of a row its owner's. dy: [kResults, width].
  std::vector<double> weight_gradient(const Reads& reads, const Array64& dy) const {
    std::vector<std::vector<double>> sums;
    for (std::int64_t p = 0; p < parts; ++p) {
      const RowGradients device = on.on_device(uses_of(p, reads, dy), rows(), dtype);
      Tensor dweights(Shape{kResults, kReads}, dtype, on.backend.device(), on.memory);
      kernels::weighted_rows_weight_gradient(on.step, tables[static_cast<std::size_t>(p)].values, device.uses.ids,
                                             device.uses.sources, device.order, held(p), {dweights, Write::set});
      sums.push_back(on.read(dweights).data);
    }
    // As ranks add them up.
    for (; sums.size() > 1; sums.resize(sums.size() / 2))
      for (std::size_t p = 0; p < sums.size() / 2; ++p)
        for (std::size_t i = 0; i < sums[p].size(); ++i) {
          const double sum = sums[2 * p][i] + sums[2 * p + 1][i];
          sums[p][i] = dtype == DType::f64 ? sum : static_cast<double>(static_cast<float>(sum));
        }
    return sums[0];
  }
  void update(const Reads& reads, const Array64& dy) {
    for (std::int64_t p = 0; p < parts; ++p)
      on.adam(on.on_device(uses_of(p, reads, dy), rows(), dtype), {.mode = TableMode::lazy, .rate = {.constant = 0.01}},
              tables[static_cast<std::size_t>(p)]);
  }

 private:
  /// body(row and column of the whole table, place in part p).
  template <class Body>
  void for_elements(std::int64_t p, Body&& body) const {
    const bool by_columns = cut == Cut::columns;
    for (std::int64_t row = by_columns ? 0 : p; row < kRows; row += by_columns ? 1 : parts)
      for (std::int64_t c = 0; c < columns(); ++c)
        body(row, by_columns ? p * columns() + c : c,
             static_cast<std::size_t>((by_columns ? row : row / parts) * columns() + c));
  }
  RowUsesOnHost uses_of(std::int64_t p, const Reads& reads, const Array64& dy) const {
    RowUsesOnHost own{reads.ids, reads.weights, reference::zeros({kResults, columns()})};
    for (std::int64_t r = 0; r < kResults; ++r)
      for (std::int64_t c = 0; c < columns(); ++c)
        own.sources.at(r, c) = dy.at(r, cut == Cut::columns ? p * columns() + c : c);
    if (cut == Cut::rows)
      for (std::size_t i = 0; i < own.ids.size(); ++i) {
        const bool is_own = own.ids[i] % parts == p;
        own.ids[i] = is_own ? own.ids[i] / parts : rows() - 1;
        if (!is_own) own.weights[i] = 0;
      }
    return own;
  }
};

TEST_CASE_METHOD(TableFixture, "test 18: a table in parts of its columns or rows reads and learns as the whole one",
                 "[ops]") {
  const auto [dtype, width] = GENERATE(table<DType, std::int64_t>(
      {{DType::f32, 4}, {DType::f32, 40}, {DType::f32, 128}, {DType::f32, 1048}, {DType::f64, 12}, {DType::f64, 264}}));
  const auto [cut, parts] = GENERATE(table<Cut, std::int64_t>(
      {{Cut::columns, 1}, {Cut::columns, 2}, {Cut::columns, 4}, {Cut::rows, 1}, {Cut::rows, 2}, {Cut::rows, 4}}));
  CAPTURE(backend.device(), name_of(dtype), width, cut == Cut::columns, parts);
  const auto stored = [number_type = dtype](Array64 array) {
    if (number_type == DType::f32)
      for (double& number : array.data) number = static_cast<double>(static_cast<float>(number));
    return array;
  };
  const Array64 start = stored(random.array({kRows, width})), target = stored(random.array({kResults, width}));
  Shards whole(*this, start, dtype, Cut::columns, 1), shards(*this, start, dtype, cut, parts);
  // On cards the columns beyond whole vectors of a row are computed one by one, which may round otherwise.
  const bool same_bits =
      cut == Cut::columns && (backend.device().kind == DeviceKind::cpu ||
                              shards.columns() * static_cast<std::int64_t>(size_of(dtype)) % kVectorBytes == 0);
  const auto compare = [&](const Array64& got, const Array64& wanted, double tolerance) {
    if (same_bits)
      CHECK((got.data == wanted.data));
    else
      check_close(got, wanted, tolerance);
  };
  for (std::int64_t t = 0; t < kSteps; ++t) {
    begin(t);
    Reads reads;
    for (std::int64_t i = 0; i < kResults * kReads; ++i) reads.ids.push_back(random.below(kRows));
    reads.weights = stored(random.array({kResults, kReads})).data;
    const Array64 wanted = whole.forward(reads), got = shards.forward(reads);
    compare(got, wanted, t == 0 ? 1e-6 : 1e-5);
    // Gradients of half the squared distance from the target, each from its own results.
    const auto gradient = [&](const Array64& y) {
      Array64 dy = y;
      for (std::size_t i = 0; i < dy.data.size(); ++i) dy.data[i] -= target.data[i];
      return stored(dy);
    };
    const std::vector<double> one = whole.weight_gradient(reads, gradient(wanted)),
                              sum = shards.weight_gradient(reads, gradient(got));
    if (same_bits) CHECK(sum == one);
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      largest = std::max(largest, std::abs(one[i]));
      worst = std::max(worst, std::abs(one[i] - sum[i]));
    }
    CHECK(worst <= (t == 0 ? 1e-6 : 1e-5) * largest);
    whole.update(reads, gradient(wanted));
    shards.update(reads, gradient(got));
  }
  compare(shards.joined(&AdamTable::values), whole.joined(&AdamTable::values), 1e-5);
  compare(shards.joined(&AdamTable::second_moment), whole.joined(&AdamTable::second_moment), 1e-5);
  CHECK(whole.joined(&AdamTable::values).data != start.data);
}

/// The numbers of columns [begin, begin + count).
Array64 columns_of(const Array64& all, const TableColumns& columns) {
  Array64 part = reference::zeros({all.shape[0], columns.count});
  for (std::int64_t r = 0; r < all.shape[0]; ++r)
    for (std::int64_t c = 0; c < columns.count; ++c) part.at(r, c) = all.at(r, columns.begin + c);
  return part;
}

TEST_CASE_METHOD(TableFixture, "columns of a table: norms, AdaGrad and rounding have the bits of the whole one",
                 "[ops]") {
  const auto [dtype, width, parts] = GENERATE(table<DType, std::int64_t, std::int64_t>(
      {{DType::f32, 128, 8}, {DType::bf16, 128, 4}, {DType::bf16, 24, 8}, {DType::f64, 20, 2}}));
  // On cards columns beyond whole vectors may be rounded otherwise: see above.
  if (backend.device().kind != DeviceKind::cpu && width != 128) return;
  CAPTURE(backend.device(), name_of(dtype), width, parts);
  const RowUsesOnHost uses = random_uses(kResults, kReads, kRows, width);
  begin(3);
  const RowGradients gradients = on_device(uses, kRows, dtype);
  AdagradTable whole = new_adagrad_table(kRows, width, dtype);
  AdamTable adam_whole = new_table(kRows, width, dtype, TableMode::lazy);
  const Array64 values = read(whole.values);
  const std::vector<double> squares = read(squares_of(gradients, whole.columns, 0.5)).data;
  adagrad(gradients, {}, whole, 0.5);
  adam(gradients, {}, adam_whole);

  std::vector<RowGradients> of_parts;
  std::vector<std::vector<double>> sums;
  std::vector<TableColumns> held;
  for (std::int64_t p = 0; p < parts; ++p) {
    held.push_back({p * (width / parts), width / parts, width});
    of_parts.push_back(on_device({uses.ids, uses.weights, columns_of(uses.sources, held.back())}, kRows, dtype));
    sums.push_back(read(squares_of(of_parts.back(), held.back(), 0.5)).data);
  }
  for (; sums.size() > 1; sums.resize(sums.size() / 2))
    for (std::size_t p = 0; p < sums.size() / 2; ++p)
      for (std::size_t i = 0; i < sums[p].size(); ++i) sums[p][i] = sums[2 * p][i] + sums[2 * p + 1][i];
  CHECK(sums[0] == squares);
  const Tensor of_rows = copied_to(backend, memory, squares, {static_cast<std::int64_t>(squares.size())});
  for (std::size_t p = 0; p < of_parts.size(); ++p) {
    CAPTURE(p);
    const Shape shape{kRows, held[p].count};
    const auto start = [&, number_type = dtype] {
      return numbers_to(backend, memory, columns_of(values, held[p]).data, shape, number_type);
    };
    AdagradTable part{start(), zeros({kRows}, compute_dtype(dtype)), held[p]};
    kernels::adagrad_rows(step, of_parts[p], of_rows, scale(0.5), {}, stream(), part);
    CHECK(read(part.values).data == columns_of(read(whole.values), held[p]).data);
    CHECK(read(part.row_sum).data == read(whole.row_sum).data);
    AdamTable adam_part = new_table(kRows, held[p].count, dtype, TableMode::lazy);
    adam_part.values = start();
    adam_part.columns = held[p];
    adam(of_parts[p], {}, adam_part);
    CHECK(read(adam_part.values).data == columns_of(read(adam_whole.values), held[p]).data);
  }
}

}  // namespace
}  // namespace engram::harness::table_shards_test
