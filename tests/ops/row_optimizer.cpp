/// Update rules of tables with gradients of rows against the plain definitions and the numbers of [product-key 10]:
/// tests 9, 10, 11.

#include "core/kernels/row_optimizer.hpp"

#include <omp.h>

#include <cmath>
#include <limits>

#include "core/kernels/row_order.hpp"
#include "tests/ops/sparse_memory.hpp"
#include "tests/ops/table_fixture.hpp"

namespace engram::harness::row_optimizer_test {
namespace {

TEST_CASE_METHOD(TableFixture, "a row's gradient is summed in pieces of 256, those by a tree of pairs", "[ops]") {
  // Products with weights of 1 are exact, so that the order of the additions is all that decides the bits.
  const std::vector<std::int64_t> lengths{1, 700, 2, 256, 257, 5 * 256, 0, 11 * 256 + 3, 300};
  for (const std::int64_t width : {3, 8}) {
    RowUsesOnHost uses;
    for (std::size_t row = 0; row < lengths.size(); ++row)
      uses.ids.insert(uses.ids.end(), static_cast<std::size_t>(lengths[row]), static_cast<std::int64_t>(row));
    uses.weights.assign(uses.ids.size(), 1);
    uses.sources = random.array({static_cast<std::int64_t>(uses.ids.size()), width});
    for (double& number : uses.sources.data) number = static_cast<double>(static_cast<float>(number));
    const RowGradients gradients = on_device(uses, 9, DType::f32);
    const std::vector<double> got = sums_of(gradients, 9, width, DType::f32);
    std::vector<double> wanted;
    std::size_t begin = 0;
    for (const std::int64_t length : lengths) {
      for (std::int64_t c = 0; c < width; ++c) {
        std::vector<float> level;
        for (std::int64_t i = 0; i < length; ++i) {
          const auto source = static_cast<float>(uses.sources.at(static_cast<std::int64_t>(begin) + i, c));
          if (i % 256 == 0)
            level.push_back(source);
          else
            level.back() += source;
        }
        while (level.size() > 1) {
          std::vector<float> next;
          for (std::size_t i = 0; i < level.size(); i += 2)
            next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
          level = next;
        }
        wanted.push_back(level.empty() ? 0 : static_cast<double>(level[0]));
      }
      begin += static_cast<std::size_t>(length);
    }
    CHECK(got == wanted);
  }
}

TEST_CASE_METHOD(TableFixture, "tables: summed and unsummed gradients give the same bits", "[ops]") {
  for (const DType sources : {DType::f64, DType::f32, DType::bf16})
    for (const std::int64_t width : {5, 16, 37, 530}) {
      const DType dtype = compute_dtype(sources);
      // Of 11 rows, with some 47 and 472 uses each: in one piece, and in two.
      const RowUsesOnHost uses = random_uses(width == 5 ? 40 : 400, 13, 11, width);
      const RowGradients fused = on_device(uses, 11, sources);
      RowGradients stored{.uses = {}, .order = fused.order, .sums = {}};
      stored.sums = step.empty({fused.order.rows.count(), width}, dtype);
      kernels::sum_row_uses(step, fused.uses, fused.order, stored.sums);
      const auto sums_of_squares = [&](const RowGradients& gradients) {
        std::vector<double> all;
        AdagradTable table = new_adagrad_table(11, width, dtype);
        adagrad(gradients, {}, table, 0.5);
        append(all, table.values);
        append(all, table.row_sum);
        const Tensor squares = squares_of(gradients, TableColumns::all(width));
        append(all, squares);
        append(all, squared_norm(squares));
        return all;
      };
      const auto bits = [&](const RowGradients& gradients) {
        std::vector<double> all;
        if (backend.device().kind == DeviceKind::cpu) all = sums_of_squares(gradients);
        for (const TableMode mode : {TableMode::dense, TableMode::lazy}) {
          AdamTable table = new_table(11, width, dtype, mode);
          adam(gradients, {.mode = mode}, table);
          for (const Tensor* tensor : {&table.values, &table.first_moment, &table.second_moment}) append(all, *tensor);
        }
        return all;
      };
      const std::vector<double> wanted = bits(fused);
      CAPTURE(name_of(sources), width);
      CHECK(bits(stored) == wanted);
      // Elsewhere a compiler may join products and sums of squares differently in kernels of their own.
      const std::vector<double> a = sums_of_squares(fused), b = sums_of_squares(stored);
      REQUIRE(a.size() == b.size());
      double worst = 0;
      for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
      CHECK(worst <= (dtype == DType::f64 ? 1e-12 : 1e-5));
      const int before = omp_get_max_threads();
      for (const int threads : {1, 2, 8}) {
        omp_set_num_threads(threads);
        CHECK(bits(fused) == wanted);
      }
      omp_set_num_threads(before);
    }
}

TEST_CASE_METHOD(TableFixture, "Adam on rows equals its definition in every mode", "[ops]") {
  const auto [mode, moved] = GENERATE(table<TableMode, reference::MovedRows>({
      {TableMode::dense, reference::MovedRows::all},
      {TableMode::lazy, reference::MovedRows::touched},
      {TableMode::row_step, reference::MovedRows::touched_with_own_count},
  }));
  const bool corrected = GENERATE(false, true);
  constexpr double kRate = 0.07;  // no float
  const kernels::RowAdamOptions options{.mode = mode,
                                        .epsilon = 0.01,
                                        .epsilon_at = corrected ? EpsilonAt::corrected : EpsilonAt::uncorrected,
                                        .weight_decay = 0.125,
                                        .rate = {.constant = 0.5, .share = 2}};
  for (const DType dtype : {DType::f64, DType::f32})
    for (const std::int64_t width : {1, 7, 132, 1030}) {
      constexpr std::int64_t kRows = 9;
      AdamTable table = new_table(kRows, width, dtype, mode);
      Array64 value = read(table.values), m = reference::zeros({kRows, width}), v = m;
      std::vector<std::int64_t> steps(kRows);
      for (std::int64_t t = 1; t <= 4; ++t) {
        begin(t - 1, kRate);
        const RowUsesOnHost uses = random_uses(2, 3, kRows, width);
        adam(on_device(uses, kRows, dtype), options, table, 0.25);
        reference::TableGradient gradient = reference::table_gradient(kRows, uses.ids, uses.weights, uses.sources);
        for (double& g : gradient.sums.data) g *= 0.25;
        reference::table_adam(value, gradient, m, v, steps, t, moved,
                              {.rate = 0.5 + 2 * kRate,
                               .epsilon = options.epsilon,
                               .weight_decay = options.weight_decay,
                               .corrected_root = corrected});
      }
      const double tolerance = dtype == DType::f64 ? 1e-13 : 4e-6;
      check_close(read(table.values), value, tolerance);
      check_close(read(table.first_moment), m, tolerance);
      check_close(read(table.second_moment), v, tolerance);
      if (mode == TableMode::row_step)
        for (std::size_t row = 0; row < kRows; ++row)
          CHECK(read(table.steps).data[row] == static_cast<double>(steps[row]));
    }
}

// [product-key 10], test 20: 46341^2 slots are the first square whose ids do not fit into 32 bits.
TEST_CASE_METHOD(TableFixture, "tables: row 2147488280 is updated, and no other", "[ops]") {
  if (backend.device().kind == DeviceKind::cuda) return;  // its memory is not sparse
  constexpr std::int64_t kRows = 46341LL * 46341, kLast = 2147488280, kWrapped = kLast - (std::int64_t{1} << 31);
  static_assert(kLast == kRows - 1);
  SparseMemory sparse;
  const auto table_of = [&](DType dtype) { return Tensor(Shape{kRows, 1}, dtype, backend.device(), sparse); };
  const RowGradients gradients =
      on_device({{kLast, 1, kLast}, {1, 1, 1}, reference::array({3, 1}, {1, -1, 3})}, kRows, DType::f32);
  using Elements = std::map<std::int64_t, double>;
  const float rate = 0.25;
  {
    AdamTable table{.values = table_of(DType::f32),
                    .first_moment = table_of(DType::f32),
                    .second_moment = table_of(DType::f32),
                    .steps = Tensor(Shape{kRows}, DType::i32, backend.device(), sparse),
                    .columns = TableColumns::all(1)};
    table.values.data<float>()[kLast] = 1;
    table.values.data<float>()[kWrapped] = 100;
    table.values.data<float>()[0] = 5;
    // Powers of two: every step is exact. The first step of a row is as long as the rate, m / sqrt(v) being 1.
    adam(gradients,
         {.mode = TableMode::row_step, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0, .rate = {.constant = rate}}, table);
    CHECK(elements_other_than_zero<float>(table.values) ==
          Elements{{0, 5}, {1, rate}, {kWrapped, 100}, {kLast, 1 - rate}});
    CHECK(elements_other_than_zero<float>(table.first_moment) == Elements{{1, -0.5}, {kLast, 2}});
    CHECK(elements_other_than_zero<float>(table.second_moment) == Elements{{1, 0.25}, {kLast, 4}});
    CHECK(elements_other_than_zero<std::int32_t>(table.steps) == Elements{{1, 1}, {kLast, 1}});
  }
  AdagradTable table{table_of(DType::bf16), Tensor(Shape{kRows}, DType::f32, backend.device(), sparse),
                     TableColumns::all(1)};
  table.values.data<bf16>()[kWrapped] = bf16(100.0f);
  adagrad(gradients, {.epsilon = 0, .rate = {.constant = rate}}, table);
  CHECK(elements_other_than_zero<bf16>(table.values) == Elements{{1, rate}, {kWrapped, 100}, {kLast, -rate}});
  CHECK(elements_other_than_zero<float>(table.row_sum) == Elements{{1, 1}, {kLast, 16}});
}

TEST_CASE_METHOD(TableFixture, "test 9: two uses of one row are added before they are squared", "[ops]") {
  AdamTable table = new_table(3, 1, DType::f64, TableMode::lazy);
  const double g = 0.75;
  adam(on_device({{1, 1}, {1, 1}, reference::array({1, 1}, {g})}, 3, DType::f64), {}, table);
  CHECK(read(table.second_moment).data[1] == Approx((1 - 0.999) * (2 * g) * (2 * g)).epsilon(1e-14));
  CHECK(read(table.second_moment).data[0] == 0);
}

TEST_CASE_METHOD(TableFixture, "test 10: what the modes make of the gradients 1, 0, 1", "[ops]") {
  const auto [mode, wanted] = GENERATE(table<TableMode, std::vector<double>>({
      {TableMode::dense, {-0.001, -0.00167005825, -0.00248806122}},
      {TableMode::lazy, {-0.001, -0.001, -0.00185846256}},
      {TableMode::row_step, {-0.001, -0.001, -0.002}},
  }));
  AdamTable table = flat_table(1, mode);
  for (int t = 0; t < 3; ++t) {
    begin(t);
    one_gradient(t == 1 ? 0 : 1, {.mode = mode, .epsilon = 0}, table);
    CHECK(read(table.values).data[0] == Approx(wanted[static_cast<std::size_t>(t)]).epsilon(3e-9));
  }
}

TEST_CASE_METHOD(TableFixture, "test 10: what a gradient of 1 comes to in 200 steps without one", "[ops]") {
  const auto [mode, wanted] = GENERATE(table<TableMode, double>({
      {TableMode::dense, -0.00600550789},
      {TableMode::lazy, -0.001},
      {TableMode::deferred, -0.00600550789},
  }));
  AdamTable table = flat_table(1, mode);
  const kernels::RowAdamOptions options{.mode = mode, .epsilon = 0};
  for (int t = 0; t <= 200; ++t) {
    begin(t);
    one_gradient(t == 0 ? 1 : 0, options, table);
  }
  flush(options, table);
  CHECK(read(table.values).data[0] == Approx(wanted).epsilon(1e-8));
}

TEST_CASE_METHOD(TableFixture, "test 11: with all rows touched, lazy is dense bit by bit", "[ops]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    AdamTable lazy = new_table(6, 37, dtype, TableMode::lazy), dense = new_table(6, 37, dtype, TableMode::dense);
    for (int t = 0; t < 5; ++t) {
      begin(t, 0.01f);
      RowUsesOnHost uses = random_uses(3, 4, 6, 37);
      for (std::size_t p = 0; p < uses.ids.size(); ++p) uses.ids[p] = static_cast<std::int64_t>(p % 6);
      const RowGradients gradients = on_device(uses, 6, dtype);
      adam(gradients, {.mode = TableMode::lazy}, lazy);
      adam(gradients, {.mode = TableMode::dense}, dense);
    }
    CHECK(read(lazy.values).data == read(dense.values).data);
    CHECK(read(lazy.first_moment).data == read(dense.first_moment).data);
    CHECK(read(lazy.second_moment).data == read(dense.second_moment).data);
  }
}

TEST_CASE_METHOD(TableFixture, "test 11: deferred after 1, 0, 0, 0, 0", "[ops]") {
  AdamTable deferred = flat_table(1, TableMode::deferred), dense = flat_table(1, TableMode::dense);
  const kernels::RowAdamOptions options{.mode = TableMode::deferred, .epsilon = 0};
  for (int t = 0; t < 5; ++t) {
    begin(t);
    one_gradient(t == 0 ? 1 : 0, options, deferred);
    one_gradient(t == 0 ? 1 : 0, {.mode = TableMode::dense, .epsilon = 0}, dense);
  }
  flush(options, deferred);
  const double got = read(deferred.values).data[0];
  CHECK(got == Approx(-0.00297090642).epsilon(1e-7));
  CHECK(got == Approx(read(dense.values).data[0]).epsilon(1e-12));
}

TEST_CASE_METHOD(TableFixture, "tables: without a gradient lazy keeps all, dense lets moments fade", "[ops]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    AdamTable lazy = new_table(4, 5, dtype, TableMode::lazy), dense = new_table(4, 5, dtype, TableMode::dense);
    for (AdamTable* table : {&lazy, &dense}) kernels::fill(step, table->first_moment, 0.5);
    for (AdamTable* table : {&lazy, &dense}) kernels::fill(step, table->second_moment, 0.25);
    const std::vector<double> before = read(lazy.values).data;
    adam({}, {.mode = TableMode::lazy}, lazy);
    adam({}, {.mode = TableMode::dense}, dense);
    CHECK(read(lazy.values).data == before);
    CHECK(read(lazy.first_moment).data == std::vector<double>(20, 0.5));
    CHECK(read(dense.first_moment).data[3] == Approx(0.45).epsilon(1e-6));
    CHECK(read(dense.second_moment).data[3] == Approx(0.24975).epsilon(1e-6));
    CHECK(read(dense.values).data[3] != before[3]);
  }
}

TEST_CASE_METHOD(TableFixture, "tables: 0 / 0 is no move, a NaN is not hidden", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f64, DType::f32}) {
    AdamTable table = new_table(2, 3, dtype, TableMode::lazy);
    const std::vector<double> before = read(table.values).data;
    const RowGradients gradients =
        on_device({{0, 1}, {1, 1}, reference::array({2, 3}, {0, 0, 0, 0, nan, 1})}, 2, dtype);
    adam(gradients, {.epsilon = 0}, table);
    const std::vector<double> after = read(table.values).data;
    for (std::size_t i = 0; i < 4; ++i) CHECK(after[i] == before[i]);
    CHECK(std::isnan(after[4]));
    CHECK(after[5] < before[5]);

    AdagradTable still = new_adagrad_table(2, 3, dtype);
    adagrad(on_device({{0}, {1}, reference::zeros({1, 3})}, 2, dtype), {.epsilon = 0}, still);
    CHECK(part_of(read(still.values), 0, 6) == before);
  }
}

TEST_CASE_METHOD(TableFixture, "row-wise AdaGrad equals its definition", "[ops]") {
  for (const DType dtype : {DType::f64, DType::f32})
    for (const std::int64_t width : {1, 7, 264}) {
      AdagradTable table = new_adagrad_table(9, width, dtype);
      Array64 value = read(table.values);
      std::vector<double> row_sum(9);
      for (int t = 0; t < 3; ++t) {
        const RowUsesOnHost uses = random_uses(2, 3, 9, width);
        adagrad(on_device(uses, 9, dtype), {.weight_decay = 0.5, .rate = {.constant = 0.25}}, table);
        reference::table_adagrad(value, reference::table_gradient(9, uses.ids, uses.weights, uses.sources), row_sum,
                                 0.25, 1e-8, 0.5);
      }
      const double tolerance = dtype == DType::f64 ? 1e-13 : 2e-6;
      check_close(read(table.values), value, tolerance);
      check_close(read(table.row_sum), reference::array({9}, row_sum), tolerance);
    }
}

TEST_CASE_METHOD(TableFixture, "the norm of rows' gradients is that of their sums", "[ops]") {
  for (const DType sources : {DType::f64, DType::f32, DType::bf16})
    for (const std::int64_t width : {3, 520}) {
      RowUsesOnHost uses = random_uses(30, 7, 50, width);
      const RowGradients gradients = on_device(uses, 50, sources);
      uses.sources = read(gradients.uses.sources);
      uses.weights = read(gradients.uses.weights).data;
      double wanted = 0;
      for (const double g : reference::table_gradient(50, uses.ids, uses.weights, uses.sources).sums.data)
        wanted += g * g;
      const Tensor squares = squares_of(gradients, TableColumns::all(width), 0.5);
      CHECK(read(squared_norm(squares)).data[0] == Approx(wanted / 4).epsilon(sources == DType::f64 ? 1e-13 : 1e-6));
    }
  CHECK(read(squared_norm({})).data[0] == 0);
}

}  // namespace
}  // namespace engram::harness::row_optimizer_test
