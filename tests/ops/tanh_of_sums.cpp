/// tanh of sums from exponentials of their terms, as the CPU kernels of additive attention have it.

#include "cpu/tanh_of_sums.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::tanh_of_sums_test {
namespace {

/// tanh(a + b) by the way that doubled_exponentials chooses.
template <class T>
std::vector<T> tanh_of(const std::vector<T>& a, const std::vector<T>& b) {
  const auto width = static_cast<std::int64_t>(a.size()), padded = cpu::padded_width<T>(width);
  std::vector<T> of_a(static_cast<std::size_t>(padded)), of_b = of_a, result = of_a;
  const bool moderate_a = cpu::doubled_exponentials(a.data(), width, of_a.data(), padded);
  const bool moderate_b = cpu::doubled_exponentials(b.data(), width, of_b.data(), padded);
  if (!moderate_a || !moderate_b) {
    cpu::doubled_exponentials_of_sum(a.data(), b.data(), width, of_a.data(), padded);
    of_b.assign(of_b.size(), T(1));
  }
  for (std::int64_t i = 0; i < padded; i += cpu::kLanes<T>) {
    const cpu::Lanes<T> falling = cpu::falling_half(cpu::load_lanes<T>(&of_a[static_cast<std::size_t>(i)]),
                                                    cpu::load_lanes<T>(&of_b[static_cast<std::size_t>(i)]));
    cpu::store_lanes<T>(T(1) - T(2) * falling, &result[static_cast<std::size_t>(i)]);
  }
  result.resize(a.size());
  return result;
}

TEMPLATE_TEST_CASE("tanh of sums: absolute error over the whole range", "", float, double) {
  using T = TestType;
  double worst = 0;
  for (double a = -19.9; a <= 19.9; a += 0.2371) {
    std::vector<T> terms, others;
    for (double b = -19.9; b <= 19.9; b += 0.01713) {
      terms.push_back(static_cast<T>(a));
      others.push_back(static_cast<T>(b));
    }
    const std::vector<T> got = tanh_of(terms, others);
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::fabs(got[i] - std::tanh(double(terms[i]) + double(others[i]))));
  }
  CAPTURE(worst);
  CHECK(worst < (sizeof(T) == 4 ? 2e-7 : 1e-15));
}

TEMPLATE_TEST_CASE("tanh of sums: rows of every length, terms of any size", "", float, double) {
  using T = TestType;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (std::size_t width = 1; width <= 70; ++width) {
    std::vector<T> a(width), b(width);
    for (std::size_t i = 0; i < width; ++i) {
      a[i] = static_cast<T>(std::sin(double(i)));
      b[i] = static_cast<T>(std::cos(double(3 * i)));
    }
    const auto check = [&] {
      const std::vector<T> got = tanh_of(a, b);
      for (std::size_t i = 0; i < width; ++i)
        REQUIRE(std::fabs(got[i] - std::tanh(double(a[i]) + double(b[i]))) < (sizeof(T) == 4 ? 2e-7 : 1e-15));
    };
    check();
    for (const T large : {T(21), T(41), T(160), T(1024), T(1 << 20), T(-1024)}) {
      a.back() = large;
      b.back() = T(1) - large;
      check();
    }
    a.back() = kInfinity;
    REQUIRE(tanh_of(a, b).back() == 1);
    a.back() = -kInfinity;
    REQUIRE(tanh_of(a, b).back() == -1);
    a.back() = std::numeric_limits<T>::quiet_NaN();
    REQUIRE(std::isnan(tanh_of(a, b).back()));
    b.back() = T(5000);
    REQUIRE(std::isnan(tanh_of(a, b).back()));
  }
}

}  // namespace
}  // namespace engram::tanh_of_sums_test
