#include "tests/exercises/08_attention.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace engram::exercises {
namespace {

double inner_product(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The weights of query t, for the positions 0 .. t.
std::vector<double> weights_of(const Matrix& q, const Matrix& k, int t) {
  std::vector<double> weights;
  double sum = 0;
  for (int j = 0; j <= t; ++j) {
    weights.push_back(std::exp(inner_product(q.row(t), k.row(j)) / std::sqrt(q.columns())));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v) {
  Matrix y(q.rows(), v.columns());
  for (int t = 0; t < q.rows(); ++t) {
    const std::vector<double> a = weights_of(q, k, t);
    for (int j = 0; j <= t; ++j)
      for (int c = 0; c < v.columns(); ++c) y(t, c) += a[static_cast<std::size_t>(j)] * v(j, c);
  }
  return y;
}

void attention_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dy, Matrix& dq, Matrix& dk,
                        Matrix& dv) {
  const double factor = 1 / std::sqrt(q.columns());
  dq = dk = dv = Matrix(q.rows(), q.columns());
  for (int t = 0; t < q.rows(); ++t) {
    const std::vector<double> a = weights_of(q, k, t);
    double mean = 0;  // of the gradients of the weights
    for (int j = 0; j <= t; ++j) mean += a[static_cast<std::size_t>(j)] * inner_product(dy.row(t), v.row(j));
    for (int j = 0; j <= t; ++j) {
      const double weight = a[static_cast<std::size_t>(j)];
      const double ds = factor * weight * (inner_product(dy.row(t), v.row(j)) - mean);
      for (int c = 0; c < q.columns(); ++c) {
        dq(t, c) += ds * k(j, c);
        dk(j, c) += ds * q(t, c);
        dv(j, c) += weight * dy(t, c);
      }
    }
  }
}

}  // namespace engram::exercises
