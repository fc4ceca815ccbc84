#pragma once
/// Tables, their gradients and the kernels that update them, for one device of a test run.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/fill.hpp"
#include "core/kernels/row_optimizer.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/row_uses_on_host.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/table_optimizers.hpp"

namespace engram::harness {

struct TableFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  reference::RandomArrays random{17};
  Tensor clock;

  void begin(std::int64_t updates, double rate = 0) {
    step.begin({.step = static_cast<std::uint64_t>(updates), .piece = 0, .learning_rate = rate});
  }
  RandomStream stream() { return {.seed = 0x123456789, .operation = 5, .scalars = step.scalars()}; }
  Tensor scale(double factor) { return copied_to(backend, memory, std::vector<double>{factor}, {1}); }
  Tensor zeros(Shape shape, DType dtype) {
    Tensor made(shape, dtype, backend.device(), memory);
    kernels::fill(step, made, 0);
    return made;
  }
  Array64 read(const Tensor& tensor) { return to_host(backend, tensor); }
  void append(std::vector<double>& all, const Tensor& tensor) {
    for (const double number : read(tensor).data) all.push_back(number);
  }
  static std::vector<double> part_of(const Array64& array, std::size_t begin, std::size_t end) {
    return {array.data.begin() + static_cast<std::ptrdiff_t>(begin),
            array.data.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  /// Rounded to bf16, so that every dtype holds them.
  RowUsesOnHost random_uses(std::int64_t results, std::int64_t per_source, std::int64_t rows, std::int64_t width) {
    RowUsesOnHost uses{{}, random.array({results, per_source}).data, random.array({results, width})};
    for (std::int64_t p = 0; p < results * per_source; ++p) uses.ids.push_back(random.below(rows));
    for (std::vector<double>* numbers : {&uses.weights, &uses.sources.data})
      for (double& number : *numbers)
        number = static_cast<double>(static_cast<float>(bf16(static_cast<float>(number))));
    return uses;
  }
  RowGradients on_device(const RowUsesOnHost& uses, std::int64_t rows, DType sources) {
    return row_gradients(backend, memory, uses, rows, sources);
  }

  /// The same values on every call.
  AdamTable new_table(std::int64_t rows, std::int64_t width, DType dtype, TableMode mode) {
    reference::RandomArrays values(3);
    const DType computed = compute_dtype(dtype);
    AdamTable table{.values = numbers_to(backend, memory, values.array({rows, width}).data, {rows, width}, dtype),
                    .first_moment = zeros({rows, width}, computed),
                    .second_moment = zeros({rows, width}, computed),
                    .steps = {},
                    .columns = TableColumns::all(width)};
    if (mode == TableMode::row_step || mode == TableMode::deferred) table.steps = zeros({rows}, DType::i32);
    return table;
  }
  /// [rows, 1] f64 zeros.
  AdamTable flat_table(std::int64_t rows, TableMode mode) {
    AdamTable table = new_table(rows, 1, DType::f64, mode);
    kernels::fill(step, table.values, 0);
    return table;
  }

  AdagradTable new_adagrad_table(std::int64_t rows, std::int64_t width, DType dtype) {
    return {.values = new_table(rows, width, dtype, TableMode::lazy).values,
            .row_sum = zeros({rows}, compute_dtype(dtype)),
            .columns = TableColumns::all(width)};
  }
  void adagrad(const RowGradients& gradients, const kernels::RowAdagradOptions& options, AdagradTable& table,
               double factor = 1) {
    kernels::adagrad_rows(step, gradients, {}, scale(factor), options, stream(), table);
  }
  /// [C] f64.
  Tensor squares_of(const RowGradients& gradients, const TableColumns& columns, double factor = 1) {
    Tensor squares = step.empty({gradients.order.rows.count()}, DType::f64);
    kernels::row_squares(step, gradients, scale(factor), columns, squares);
    return squares;
  }
  Tensor squared_norm(const Tensor& squares) {
    Tensor norm = step.empty({1}, DType::f64);
    kernels::row_squared_norm(step, squares, norm);
    return norm;
  }

  void adam(const RowGradients& gradients, const kernels::RowAdamOptions& options, AdamTable& table,
            double factor = 1) {
    const bool deferred = options.mode == TableMode::deferred;
    if (deferred && !clock) clock = zeros({TableClock::of(options.beta1, options.beta2).count()}, DType::f64);
    kernels::adam_rows(step, gradients, scale(factor), deferred ? clock : Tensor(), options, stream(), table);
    if (deferred) kernels::advance_table_clock(step, options, clock);
  }
  /// Row 0 of a flat table has gradient g, or none for 0.
  void one_gradient(double g, const kernels::RowAdamOptions& options, AdamTable& table) {
    RowGradients gradients;
    if (g != 0) gradients = on_device({{0}, {1}, reference::array({1, 1}, {g})}, table.values.shape()[0], DType::f64);
    adam(gradients, options, table);
  }
  void flush(const kernels::RowAdamOptions& options, AdamTable& table, const Tensor& ids = {}) {
    if (options.mode == TableMode::deferred) kernels::bring_rows_up_to_date(step, ids, clock, options, stream(), table);
  }

  /// The sums that the kernels make of uses: with beta1 = 0, the first moment. Zero where there is no gradient.
  std::vector<double> sums_of(const RowGradients& gradients, std::int64_t rows, std::int64_t width, DType dtype) {
    AdamTable table = new_table(rows, width, dtype, TableMode::lazy);
    adam(gradients, {.beta1 = 0}, table);
    return read(table.first_moment).data;
  }
  static void check_close(const Array64& got, const Array64& wanted, double tolerance) {
    REQUIRE(got.data.size() == wanted.data.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.data.size(); ++i)
      worst = std::max(worst, std::abs(got.data[i] - wanted.data[i]) / std::max(1.0, std::abs(wanted.data[i])));
    CHECK(worst <= tolerance);
  }
};

}  // namespace engram::harness
