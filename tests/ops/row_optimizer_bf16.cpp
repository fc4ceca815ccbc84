/// Tables in bf16, whose new values are rounded stochastically: [product-key 7.5] and test 22.

#include <bit>

#include "core/rules/stochastic_rounding.hpp"
#include "tests/ops/table_fixture.hpp"

namespace engram::harness::row_optimizer_bf16_test {
namespace {

TEST_CASE("stochastic rounding: bits below the chance of the upper neighbour go down") {
  const float low = static_cast<float>(bf16(0.03f)),
              high = std::bit_cast<float>(std::bit_cast<std::uint32_t>(low) + (1u << 16));
  CHECK(static_cast<float>(stochastically_rounded(low, 0xffff)) == low);  // a number of bf16 stays, whatever the bits
  const float quarter = low + (high - low) / 4;
  CHECK(static_cast<float>(stochastically_rounded(quarter, 0xbfff)) == low);
  CHECK(static_cast<float>(stochastically_rounded(quarter, 0xc000)) == high);
  CHECK(static_cast<float>(stochastically_rounded(-quarter, 0xbfff)) == -low);
  CHECK(static_cast<float>(stochastically_rounded(-quarter, 0xc000)) == -high);
  CHECK(std::isinf(static_cast<float>(stochastically_rounded(INFINITY, 0xffff))));
  CHECK(std::isnan(static_cast<float>(stochastically_rounded(NAN, 0xffff))));
  CHECK(static_cast<float>(stochastically_rounded(0.0f, 0xffff)) == 0);
}

TEST_CASE_METHOD(TableFixture, "test 22: updates far below the spacing of bf16 are not lost", "[ops]") {
  constexpr std::int64_t kRows = 1000, kWidth = 1000;
  RowUsesOnHost uses{{}, std::vector<double>(kRows, -1), reference::constant(1, {1, kWidth})};
  for (std::int64_t row = 0; row < kRows; ++row) uses.ids.push_back(row);
  const RowGradients gradients = on_device(uses, kRows, DType::f32);
  const double start = static_cast<double>(static_cast<float>(bf16(0.03f)));
  const auto mean_change = [&](const Tensor& values) {
    double sum = 0;
    for (const double value : read(values).data) sum += value - start;
    return sum / (kRows * kWidth);
  };
  const auto fresh = [&] {
    Tensor values({kRows, kWidth}, DType::bf16, backend.device(), memory);
    kernels::fill(step, values, 0.03);
    return values;
  };
  // The first step of either rule is as long as the rate.
  AdamTable table = new_table(kRows, kWidth, DType::f32, TableMode::lazy);
  table.values = fresh();
  adam(gradients, {.rate = {.constant = 1e-6}}, table);
  CHECK(mean_change(table.values) == Approx(1e-6).epsilon(0.05));
  AdagradTable other{fresh(), zeros({kRows}, DType::f32), TableColumns::all(kWidth)};
  adagrad(gradients, {.rate = {.constant = 1e-6}}, other);
  CHECK(mean_change(other.values) == Approx(1e-6).epsilon(0.05));
}

TEST_CASE_METHOD(TableFixture, "bf16 tables have the values of f32 ones, rounded by the bits of their place", "[ops]") {
  for (const TableMode mode : {TableMode::dense, TableMode::lazy, TableMode::row_step, TableMode::deferred})
    for (const std::int64_t width : {3, 16, 530}) {
      constexpr std::int64_t kRows = 6;
      AdamTable rounded = new_table(kRows, width, DType::bf16, mode);
      AdamTable exact = new_table(kRows, width, DType::f32, mode);
      exact.values = numbers_to(backend, memory, read(rounded.values).data, {kRows, width}, DType::f32);
      const RowUsesOnHost uses = random_uses(2, 2, kRows, width);
      const RowGradients gradients = on_device(uses, kRows, DType::bf16);
      begin(41);
      clock = {};
      adam(gradients, {.mode = mode}, rounded);
      clock = {};
      adam(gradients, {.mode = mode}, exact);
      const Array64 got = read(rounded.values), numbers = read(exact.values);
      CHECK(read(rounded.first_moment).data == read(exact.first_moment).data);
      const RandomStream drawn{.seed = 0x123456789, .operation = 5, .scalars = nullptr};
      const std::vector<bool> touched = reference::table_gradient(kRows, uses.ids, uses.weights, uses.sources).touched;
      std::int64_t different = 0;
      for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t c = 0; c < width; ++c) {
          const auto number = static_cast<float>(numbers.at(row, c));
          const auto block = static_cast<std::uint64_t>(row * ((width + 7) / 8) + c / 8);
          const std::uint32_t bits = DropoutRule::bits_of(drawn.draw(block, 41, 0), static_cast<int>(c % 8));
          const bf16 wanted =
              touched[static_cast<std::size_t>(row)] ? stochastically_rounded(number, bits) : bf16(number);
          different += static_cast<float>(wanted) != static_cast<float>(got.at(row, c));
        }
      CHECK(different == 0);
    }
}

TEST_CASE_METHOD(TableFixture, "rows of bf16 that catch up draw bits of their own", "[ops]") {
  const kernels::RowAdamOptions options{.mode = TableMode::deferred, .epsilon = 0, .rate = {.constant = 0.01}};
  const auto bits = [&] {
    clock = {};
    random = reference::RandomArrays(5);
    AdamTable table = new_table(40, 24, DType::bf16, TableMode::deferred);
    for (int t = 0; t < 12; ++t) {
      begin(t);
      adam(t == 0 ? on_device(random_uses(40, 3, 40, 24), 40, DType::f32) : RowGradients{}, options, table);
    }
    flush(options, table);
    return read(table.values).data;
  };
  const std::vector<double> got = bits();
  CHECK(bits() == got);
  // Near what f32 becomes: a spacing of bf16, which is 1 / 128 or less below 2, for each of the two roundings.
  clock = {};
  random = reference::RandomArrays(5);
  AdamTable exact = new_table(40, 24, DType::f32, TableMode::deferred);
  const Tensor start = new_table(40, 24, DType::bf16, TableMode::deferred).values;
  exact.values = numbers_to(backend, memory, read(start).data, {40, 24}, DType::f32);
  for (int t = 0; t < 12; ++t) {
    begin(t);
    adam(t == 0 ? on_device(random_uses(40, 3, 40, 24), 40, DType::f32) : RowGradients{}, options, exact);
  }
  flush(options, exact);
  const std::vector<double> numbers = read(exact.values).data;
  double mean = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(std::abs(got[i] - numbers[i]) < 2.0 / 128);
    mean += (got[i] - numbers[i]) / static_cast<double>(got.size());
  }
  CHECK(std::abs(mean) < 3e-4);  // 960 errors of a deviation below 0.003: three deviations
}

TEST_CASE_METHOD(TableFixture, "rows of bf16 that catch up are rounded by the bits of kCatchUpOperation", "[ops]") {
  constexpr std::int64_t kRows = 6;
  const kernels::RowAdamOptions options{.mode = TableMode::deferred, .epsilon = 0, .rate = {.constant = 0.01}};
  enum class Way : std::uint8_t { all, listed, due };
  for (const Way way : {Way::all, Way::listed, Way::due})
    for (const std::int64_t width : {3, 16, 530}) {
      CAPTURE(static_cast<int>(way), width);
      clock = {};
      AdamTable table = new_table(kRows, width, DType::bf16, TableMode::deferred);
      RowUsesOnHost uses = random_uses(kRows, 1, kRows, width);
      for (std::int64_t row = 0; row < kRows; ++row) uses.ids[static_cast<std::size_t>(row)] = row;
      // After a step that all rows take, the step after step t brings row t up to date (TableClock::due).
      const std::int64_t now = way == Way::due ? 4 : 44, first = way == Way::due ? 0 : 41;
      for (std::int64_t t = first; t < now; ++t) {
        begin(t);
        adam(t == first ? on_device(uses, kRows, DType::bf16) : RowGradients{}, options, table);
      }
      AdamTable exact = new_table(kRows, width, DType::f32, TableMode::deferred);
      const auto copied = [&](const Tensor& from, DType dtype) {
        return numbers_to(backend, memory, read(from).data, {kRows, width}, dtype);
      };
      exact.values = copied(table.values, DType::f32);
      exact.first_moment = copied(table.first_moment, DType::f32);
      exact.second_moment = copied(table.second_moment, DType::f32);
      std::vector<std::int32_t> steps;
      for (const double number : read(table.steps).data) steps.push_back(static_cast<std::int32_t>(number));
      exact.steps = copied_to(backend, memory, steps, {kRows});
      const Array64 before = read(table.values);
      begin(now);
      std::vector<bool> moved(kRows, way == Way::all);
      if (way == Way::due) {
        moved[4] = true;
        const Tensor same = copied_to(backend, memory, std::vector<double>{1}, {1});
        for (AdamTable* each : {&table, &exact}) kernels::adam_rows(step, {}, same, clock, options, stream(), *each);
      } else {
        const std::vector<std::int64_t> list{4, 1, 4};
        for (const std::int64_t row : list) moved[static_cast<std::size_t>(row)] = true;
        const Tensor ids = way == Way::listed ? copied_to(backend, memory, list, {3}) : Tensor();
        for (AdamTable* each : {&table, &exact}) flush(options, *each, ids);
      }
      const Array64 got = read(table.values), numbers = read(exact.values);
      std::int64_t wrong = 0, unlike_an_update = 0;
      for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t c = 0; c < width; ++c) {
          const auto rounded = [&](std::uint32_t operation) {
            const RandomStream drawn{.seed = 0x123456789, .operation = operation, .scalars = nullptr};
            const auto block = static_cast<std::uint64_t>(row * ((width + 7) / 8) + c / 8);
            return static_cast<float>(stochastically_rounded(
                static_cast<float>(numbers.at(row, c)),
                DropoutRule::bits_of(drawn.draw(block, static_cast<std::uint64_t>(now), 0), static_cast<int>(c % 8))));
          };
          const bool moves = moved[static_cast<std::size_t>(row)];
          const float wanted = moves ? rounded(5 | kCatchUpOperation) : static_cast<float>(before.at(row, c));
          wrong += wanted != static_cast<float>(got.at(row, c));
          unlike_an_update += moves && wanted != rounded(5);
        }
      CHECK(wrong == 0);
      if (width == 530) CHECK(unlike_an_update > 100);
    }
}

}  // namespace
}  // namespace engram::harness::row_optimizer_bf16_test
