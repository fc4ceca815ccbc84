/// The plain definitions of the ordinary operations against values worked out by hand.

#include <cmath>
#include <limits>

#include "tests/harness/catch.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::reference::basic_ops_test {
namespace {

using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

void check_array(const Array64& got, const Sizes& shape, const Numbers& expected, double tolerance = 1e-14) {
  CHECK(got.shape == shape);
  REQUIRE(got.data.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    INFO("element " << k);
    CHECK(got.data[k] == Approx(expected[k]).margin(tolerance).epsilon(0));
  }
}

TEST_CASE("reference arrays: filling, indexing, checks", "[reference]") {
  const Array64 x = fill(1, {2, 3});
  CHECK(x.at(1, 0) == Approx(0.5 * std::sin(3.1)).epsilon(1e-13));
  CHECK(x.axis(-1) == 3);
  CHECK_THROWS_AS(x.at(2, 0), std::invalid_argument);
  CHECK_THROWS_AS(x.at(0), std::invalid_argument);
  CHECK_THROWS_AS(array({2}, {1, 2, 3}), std::invalid_argument);
}

TEST_CASE("reference element-wise operations", "[reference]") {
  const Array64 x = array({2}, {-1, 2});
  check_array(add(x, array({2}, {10, 20})), {2}, {9, 22});
  check_array(scale(x, -3), {2}, {3, -6});
  CHECK(sum(x) == 1);
  check_array(relu(x), {2}, {0, 2});
  check_array(gelu(array({3}, {1, 0, -1})), {3}, {0.8413447460685429, 0, -0.15865525393145707});
  check_array(tanh(array({1}, {std::log(2.0)})), {1}, {0.6});
  check_array(sigmoid(array({3}, {std::log(3.0), -1000, 1000})), {3}, {0.75, 0, 1});
  CHECK_THROWS_AS(add(x, zeros({3})), std::invalid_argument);
}

TEST_CASE("reference linear map and matrix products", "[reference]") {
  const Array64 weight = array({2, 3}, {1, 2, 3, 4, 5, 6});
  check_array(linear(array({1, 2, 3}, {1, 0, -1, 2, 1, 0}), weight, array({2}, {10, 20})), {1, 2, 2}, {8, 18, 14, 33});
  const Array64 a = array({2, 3}, {1, 2, 3, 4, 5, 6}), at = array({3, 2}, {1, 4, 2, 5, 3, 6});
  const Array64 b = array({3, 2}, {1, 0, 2, -1, 0, 3}), bt = array({2, 3}, {1, 2, 0, 0, -1, 3});
  const Numbers product{5, 7, 14, 13};
  check_array(matmul(a, b), {2, 2}, product);
  check_array(matmul(at, b, true), {2, 2}, product);
  check_array(matmul(a, bt, false, true), {2, 2}, product);
  check_array(matmul(at, bt, true, true), {2, 2}, product);
  check_array(matmul(array({2, 1, 2}, {1, 2, 3, 4}), array({2, 2, 1}, {1, 1, 10, 1})), {2, 1, 1}, {3, 34});
  CHECK_THROWS_AS(matmul(a, a), std::invalid_argument);
}

TEST_CASE("reference concat and slice", "[reference]") {
  const Array64 a = array({2, 1, 2}, {1, 2, 3, 4}), b = array({2, 2, 2}, {10, 11, 12, 13, 20, 21, 22, 23});
  const Array64 joined = concat({a, b}, 1);
  check_array(joined, {2, 3, 2}, {1, 2, 10, 11, 12, 13, 3, 4, 20, 21, 22, 23});
  check_array(slice(joined, 1, 1, 3), {2, 2, 2}, b.data);
  check_array(slice(joined, 0, 1, 2), {1, 3, 2}, {3, 4, 20, 21, 22, 23});
  check_array(slice(joined, 2, 1, 2), {2, 3, 1}, {2, 11, 13, 4, 21, 23});
  check_array(slice(joined, 1, 1, 1), {2, 0, 2}, {});
  CHECK_THROWS_AS(concat({a, zeros({2, 1, 3})}, 1), std::invalid_argument);
}

TEST_CASE("reference softmax and cross entropy", "[reference]") {
  const Array64 logits = array({2, 3}, {0, std::log(2.0), std::log(3.0), 1000, 1000, -1e9});
  check_array(softmax(logits), {2, 3}, {1 / 6., 1 / 3., 0.5, 0.5, 0.5, 0});
  const CrossEntropy both = cross_entropy(logits, {1, 0}, {2, 0.5});
  check_array(both.row_loss, {2}, {std::log(3.0), std::log(2.0)}, 1e-12);
  CHECK(both.loss == Approx(2 * std::log(3.0) + 0.5 * std::log(2.0)).epsilon(1e-13));
  const double infinity = std::numeric_limits<double>::infinity();
  const CrossEntropy padded = cross_entropy(array({2, 2}, {0, 0, 0, -infinity}), {1, 1}, {1, 0});
  CHECK(padded.loss == Approx(std::log(2.0)).epsilon(1e-14));
  CHECK_THROWS_AS(cross_entropy(logits, {3, 0}, {1, 1}), std::invalid_argument);
}

TEST_CASE("reference layer norm and embedding", "[reference]") {
  const LayerNorm result =
      layer_norm(array({1, 2}, {1, 2}), array({1, 2}, {-2, 3}), array({2}, {2, 3}), array({2}, {0.5, -0.5}), 0.75);
  check_array(result.sum, {1, 2}, {-1, 5});
  const double unit = 3 / std::sqrt(9.75);  // mean 2, biased variance 9
  check_array(result.normalised, {1, 2}, {0.5 - 2 * unit, -0.5 + 3 * unit});
  check_array(embedding(array({3, 2}, {1, 2, 3, 4, 5, 6}), {2, 0, 2}), {3, 2}, {5, 6, 1, 2, 5, 6});
  CHECK_THROWS_AS(embedding(zeros({3, 2}), {3}), std::invalid_argument);
}

}  // namespace
}  // namespace engram::reference::basic_ops_test
