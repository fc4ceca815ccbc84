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
      table.values = numbers_to(on.backend, on.memory, numbers, {rows(), columns()}, dtype);
      tables.push_back(table);
    }
  }
  std::int64_t columns() const { return cut == Cut::columns ? width / parts : width; }
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
    std::vector<double> whole(reads.ids.size());
    for (std::int64_t p = 0; p < parts; ++p) {
      const RowGradients device = on.on_device(uses_of(p, reads, dy), rows(), dtype);
      Tensor dweights(Shape{kResults, kReads}, dtype, on.backend.device(), on.memory);
      kernels::weighted_rows_weight_gradient(on.step, tables[static_cast<std::size_t>(p)].values, device.uses.ids,
                                             device.uses.sources, device.order, {dweights, Write::set});
      const std::vector<double> part = on.read(dweights).data;
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += part[i];
    }
    return whole;
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

}  // namespace
}  // namespace engram::harness::table_shards_test
