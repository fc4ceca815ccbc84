/// Deferred updates of a table against those of every row in every step: [product-key 2.4].

#include <omp.h>

#include "tests/ops/table_fixture.hpp"

namespace engram::harness::row_optimizer_deferred_test {
namespace {

double rate_of(int t) { return 0.001 * (1 + t % 7); }

TEST_CASE_METHOD(TableFixture, "deferred is dense, at rates that change, whenever it is looked at", "[ops]") {
  constexpr std::int64_t kRows = 7, kWidth = 5;
  for (const double decay : {0.0, 0.5})
    for (const double beta1 : {0.9, 0.5})  // at 0.5 a sum has 58 terms, which gaps exceed
      for (const DType dtype : {DType::f64, DType::f32}) {
        clock = {};
        AdamTable table = new_table(kRows, kWidth, dtype, TableMode::deferred);
        Array64 value = read(table.values), m = reference::zeros({kRows, kWidth}), v = m;
        std::vector<std::int64_t> unused(kRows);
        const kernels::RowAdamOptions options{.mode = TableMode::deferred,
                                              .beta1 = beta1,
                                              .epsilon = 0,
                                              .weight_decay = decay,
                                              .rate = {.constant = 0, .share = 1}};
        const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-6;
        for (int t = 0; t < 300; ++t) {
          begin(t, rate_of(t));
          // Row 6 is used once, at the beginning; a step of eleven has no gradient at all.
          RowUsesOnHost uses = random_uses(2, 2, t == 3 ? kRows : kRows - 1, kWidth);
          if (t == 3) uses.ids[1] = kRows - 1;
          if (t % 11 == 10) uses = {{}, {}, reference::zeros({1, kWidth})};
          adam(uses.ids.empty() ? RowGradients{} : on_device(uses, kRows, dtype), options, table);
          reference::table_adam(value, reference::table_gradient(kRows, uses.ids, uses.weights, uses.sources), m, v,
                                unused, t + 1, reference::MovedRows::all,
                                {.rate = rate_of(t), .beta1 = beta1, .epsilon = 0, .weight_decay = decay});
          if (t == 50) {
            flush(options, table, copied_to(backend, memory, std::vector<std::int64_t>{2, 0, 2, 2, 0, 2}, {2, 3}));
            for (const std::int64_t row : {0, 2})
              for (std::int64_t c = 0; c < kWidth; ++c)
                CHECK(std::abs(read(table.values).at(row, c) - value.at(row, c)) < tolerance);
          }
          if (t == 120) {
            flush(options, table);
            check_close(read(table.values), value, tolerance);
          }
        }
        flush(options, table);
        check_close(read(table.values), value, tolerance);
        check_close(read(table.first_moment), m, tolerance);
        check_close(read(table.second_moment), v, tolerance);
        CHECK(read(table.steps).data == std::vector<double>(kRows, 300));
        const std::vector<double> there = read(table.values).data;
        flush(options, table);  // nothing is left to do
        CHECK(read(table.values).data == there);
      }
}

TEST_CASE_METHOD(TableFixture, "deferred rows with a gradient in every step have epsilon at either root", "[ops]") {
  constexpr std::int64_t kRows = 4, kWidth = 5;
  for (const EpsilonAt at : {EpsilonAt::corrected, EpsilonAt::uncorrected}) {
    clock = {};
    AdamTable table = new_table(kRows, kWidth, DType::f64, TableMode::deferred);
    Array64 value = read(table.values), m = reference::zeros({kRows, kWidth}), v = m;
    std::vector<std::int64_t> unused(kRows);
    for (int t = 0; t < 6; ++t) {
      begin(t, rate_of(t));
      const RowUsesOnHost uses{{0, 1, 2, 3}, {1, 1, 1, 1}, random.array({4, kWidth})};
      adam(on_device(uses, kRows, DType::f64),
           {.mode = TableMode::deferred, .epsilon = 0.01, .epsilon_at = at, .rate = {.constant = 0, .share = 1}},
           table);
      reference::table_adam(value, reference::table_gradient(kRows, uses.ids, uses.weights, uses.sources), m, v, unused,
                            t + 1, reference::MovedRows::all,
                            {.rate = rate_of(t), .epsilon = 0.01, .corrected_root = at == EpsilonAt::corrected});
    }
    check_close(read(table.values), value, 1e-13);
  }
}

TEST_CASE_METHOD(TableFixture, "a row may be left alone for longer than a sum has terms", "[ops]") {
  const kernels::RowAdamOptions options{
      .mode = TableMode::deferred, .epsilon = 0, .weight_decay = 0.25, .rate = {.constant = 0, .share = 1}};
  REQUIRE(TableClock::of(options.beta1, options.beta2).terms < 400);
  AdamTable table = flat_table(700, TableMode::deferred);
  Array64 value = reference::zeros({700, 1}), m = value, v = value;
  std::vector<std::int64_t> unused(700);
  for (int t = 0; t < 650; ++t) {
    begin(t, rate_of(t));
    // Rows from 650 on come late in the rounds that bring rows up to date: nothing reaches them before the flush.
    RowUsesOnHost uses{{}, {}, reference::zeros({1, 1})};
    if (t < 40) uses = {{650 + t, 650 + t / 2}, {1, 0.5}, reference::array({1, 1}, {0.25 + t})};
    adam(t < 40 ? on_device(uses, 700, DType::f64) : RowGradients{}, options, table);
    reference::table_adam(value, reference::table_gradient(700, uses.ids, uses.weights, uses.sources), m, v, unused,
                          t + 1, reference::MovedRows::all, {.rate = rate_of(t), .epsilon = 0, .weight_decay = 0.25});
  }
  CHECK(read(table.steps).data[650] < 50);
  flush(options, table);
  double largest = 0, worst = 0;
  const std::vector<double> got = read(table.values).data;
  for (std::size_t row = 0; row < 700; ++row) {
    largest = std::max(largest, std::abs(value.data[row]));
    worst = std::max(worst, std::abs(got[row] - value.data[row]));
  }
  CHECK(largest > 0.001);
  CHECK(worst < 1e-12 * largest);
}

TEST_CASE_METHOD(TableFixture, "a clock that begins late knows of no step before", "[ops]") {
  const kernels::RowAdamOptions options{.mode = TableMode::deferred, .epsilon = 0};
  AdamTable deferred = flat_table(2, TableMode::deferred), dense = flat_table(2, TableMode::dense);
  // As a run that is continued after 5000 updates finds them.
  kernels::fill(step, deferred.steps, 5000);
  for (int t = 5000; t < 5020; ++t) {
    begin(t);
    if (t == 5000) {
      clock = zeros({TableClock::of(options.beta1, options.beta2).count()}, DType::f64);
      flush(options, deferred);
    }
    one_gradient(t % 8 == 0 ? 1 : 0, options, deferred);
    one_gradient(t % 8 == 0 ? 1 : 0, {.mode = TableMode::dense, .epsilon = 0}, dense);
  }
  flush(options, deferred);
  check_close(read(deferred.values), read(dense.values), 1e-13);
  CHECK(read(deferred.steps).data == std::vector<double>{5020, 5020});
}

TEST_CASE_METHOD(TableFixture, "deferred updates have the same bits for every number of threads", "[ops]") {
  const auto bits = [&] {
    random = reference::RandomArrays(23);
    clock = {};
    AdamTable table = new_table(200, 300, DType::f32, TableMode::deferred);
    const kernels::RowAdamOptions options{.mode = TableMode::deferred, .epsilon = 0};
    for (int t = 0; t < 6; ++t) {
      begin(t);
      const RowUsesOnHost uses = random_uses(10, 12, 200, 300);
      const RowGradients gradients = on_device(uses, 200, DType::f32);
      if (t > 0) flush(options, table, gradients.uses.ids);
      adam(gradients, options, table);
    }
    std::vector<double> all;
    for (const Tensor* tensor : {&table.values, &table.first_moment, &table.second_moment, &table.steps})
      append(all, *tensor);
    return all;
  };
  const std::vector<double> wanted = bits();
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 8}) {
    omp_set_num_threads(threads);
    CHECK(bits() == wanted);
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace engram::harness::row_optimizer_deferred_test
