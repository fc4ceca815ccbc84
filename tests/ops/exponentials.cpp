/// The exponentials of one row that the CPU kernels share.

#include "cpu/exponentials.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::exponentials_test {
namespace {

TEMPLATE_TEST_CASE("exponentials of rows of every length", "", float, double) {
  using T = TestType;
  constexpr T kGuard = -7;
  for (std::int64_t count = 0; count <= 70; ++count) {
    std::vector<T> row(static_cast<std::size_t>(count) + 2, kGuard), x = row;
    for (std::int64_t i = 0; i < count; ++i)
      row[static_cast<std::size_t>(i) + 1] = static_cast<T>(std::sin(double(i)) * 12 - 3);
    x = row;
    const T sum = cpu::exponentials(row.data() + 1, count, T(0.5));
    double expected_sum = 0;
    for (std::size_t i = 1; i <= static_cast<std::size_t>(count); ++i) {
      const double expected = std::exp(static_cast<double>(x[i] - T(0.5)));
      expected_sum += expected;
      REQUIRE(std::fabs(row[i] - expected) <= 4 * std::numeric_limits<T>::epsilon() * expected);
    }
    REQUIRE(std::fabs(sum - expected_sum) <= 16 * std::numeric_limits<T>::epsilon() * expected_sum);
    REQUIRE(row.front() == kGuard);
    REQUIRE(row.back() == kGuard);
  }
}

TEST_CASE("exponentials over the whole range of f32") {
  // Relative error in units of the last place; below the smallest normal number the result is 0.
  double worst = 0;
  for (double x = -87.3; x < 88.37; x += 0.00137) {
    float value = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(value));
    cpu::exponentials(&value, 1, 0.0f);
    worst = std::max(worst, std::fabs(value / expected - 1));
  }
  CHECK(worst < 1.2e-7);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> row{-kInfinity, -1000, -104, kInfinity, 1000, 89.5f, std::nanf(""), 0};
  cpu::exponentials(row.data(), 8, 0.0f);
  for (const std::size_t i : {0u, 1u, 2u}) CHECK(row[i] == 0);
  for (const std::size_t i : {3u, 4u, 5u}) CHECK(row[i] == kInfinity);
  CHECK(std::isnan(row[6]));
  CHECK(row[7] == 1);
}

}  // namespace
}  // namespace engram::exponentials_test
