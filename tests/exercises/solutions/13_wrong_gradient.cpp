#include "tests/exercises/13_wrong_gradient.hpp"

#include <cmath>
#include <cstddef>

namespace engram::exercises {
namespace {

/// What the forward pass computes on its way.
struct Passed {
  double deviation = 0;  // sqrt(variance + 1e-5)
  std::vector<double> norm, before, inner;
};

std::vector<double> product(const Matrix& w, const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(w.rows()));
  for (int r = 0; r < w.rows(); ++r)
    for (int c = 0; c < w.columns(); ++c) y[std::size_t(r)] += w(r, c) * x[std::size_t(c)];
  return y;
}

/// w^T dy
std::vector<double> product_of_transposed(const Matrix& w, const std::vector<double>& dy) {
  std::vector<double> dx(static_cast<std::size_t>(w.columns()));
  for (int r = 0; r < w.rows(); ++r)
    for (int c = 0; c < w.columns(); ++c) dx[std::size_t(c)] += w(r, c) * dy[std::size_t(r)];
  return dx;
}

/// dy x^T
Matrix outer_product(const std::vector<double>& dy, const std::vector<double>& x) {
  Matrix dw(static_cast<int>(dy.size()), static_cast<int>(x.size()));
  for (int r = 0; r < dw.rows(); ++r)
    for (int c = 0; c < dw.columns(); ++c) dw(r, c) = dy[std::size_t(r)] * x[std::size_t(c)];
  return dw;
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

Passed pass(const Block& block, const std::vector<double>& x) {
  Passed passed;
  const double mean = mean_of(x);
  std::vector<double> squares;
  for (const double number : x) squares.push_back((number - mean) * (number - mean));
  passed.deviation = std::sqrt(mean_of(squares) + 1e-5);
  for (const double number : x) passed.norm.push_back((number - mean) / passed.deviation);
  passed.before = product(block.w1, passed.norm);
  for (const double number : passed.before) passed.inner.push_back(std::tanh(number));
  return passed;
}

/// dbefore from dinner, for inner = tanh(before).
std::vector<double> tanh_backward(const Passed& passed, const std::vector<double>& dinner) {
  std::vector<double> dbefore;
  for (std::size_t i = 0; i < dinner.size(); ++i)
    dbefore.push_back((1 - passed.inner[i] * passed.inner[i]) * dinner[i]);
  return dbefore;
}

/// dx from dnorm, for norm = (x - mean(x)) / deviation.
std::vector<double> norm_backward(const Passed& passed, const std::vector<double>& dnorm) {
  const double mean = mean_of(dnorm);
  std::vector<double> products;
  for (std::size_t i = 0; i < dnorm.size(); ++i) products.push_back(dnorm[i] * passed.norm[i]);
  const double along = mean_of(products);  // the deviation depends on x too
  std::vector<double> dx;
  for (std::size_t i = 0; i < dnorm.size(); ++i)
    dx.push_back((dnorm[i] - mean - passed.norm[i] * along) / passed.deviation);
  return dx;
}

}  // namespace

std::vector<double> block_forward(const Block& block, const std::vector<double>& x) {
  std::vector<double> y = product(block.w2, pass(block, x).inner);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  return y;
}

BlockGradients block_backward(const Block& block, const std::vector<double>& x, const std::vector<double>& dy) {
  const Passed passed = pass(block, x);
  BlockGradients gradients;
  gradients.w2 = outer_product(dy, passed.inner);
  const std::vector<double> dbefore = tanh_backward(passed, product_of_transposed(block.w2, dy));
  gradients.w1 = outer_product(dbefore, passed.norm);
  gradients.x = norm_backward(passed, product_of_transposed(block.w1, dbefore));
  for (std::size_t i = 0; i < dy.size(); ++i) gradients.x[i] += dy[i];
  return gradients;
}

}  // namespace engram::exercises
