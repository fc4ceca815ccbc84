#include "tests/reference/table_optimizers.hpp"

#include <cmath>

namespace engram::reference {

TableGradient table_gradient(std::int64_t rows, const std::vector<std::int64_t>& ids,
                             const std::vector<double>& weights, const Array64& sources) {
  require(ids.size() == weights.size(), "table_gradient: a weight for every use");
  const std::int64_t results = sources.axis(0), width = sources.axis(1);
  TableGradient gradient{zeros({rows, width}), std::vector<bool>(static_cast<std::size_t>(rows), false)};
  const std::int64_t per_source = static_cast<std::int64_t>(ids.size()) / results;
  for (std::size_t p = 0; p < ids.size(); ++p) {
    gradient.touched.at(static_cast<std::size_t>(ids[p])) = true;
    for (std::int64_t c = 0; c < width; ++c)
      gradient.sums.at(ids[p], c) += weights[p] * sources.at(static_cast<std::int64_t>(p) / per_source, c);
  }
  return gradient;
}

void table_adam(Array64& value, const TableGradient& gradient, Array64& first, Array64& second,
                std::vector<std::int64_t>& steps, std::int64_t t, MovedRows moved, const TableAdamOptions& options) {
  for (std::int64_t row = 0; row < value.axis(0); ++row) {
    const auto r = static_cast<std::size_t>(row);
    if (moved != MovedRows::all && !gradient.touched.at(r)) continue;
    const auto own = static_cast<double>(moved == MovedRows::touched_with_own_count ? ++steps.at(r) : t);
    const double correction1 = 1 - std::pow(options.beta1, own), correction2 = 1 - std::pow(options.beta2, own);
    for (std::int64_t c = 0; c < value.axis(1); ++c) {
      const double g = gradient.touched.at(r) ? gradient.sums.at(row, c) : 0;
      double& m = first.at(row, c);
      double& v = second.at(row, c);
      double& p = value.at(row, c);
      p -= options.rate * options.weight_decay * p;
      m = options.beta1 * m + (1 - options.beta1) * g;
      v = options.beta2 * v + (1 - options.beta2) * g * g;
      if (v == 0) continue;
      if (options.corrected_root)
        p -= options.rate / correction1 * m / (std::sqrt(v / correction2) + options.epsilon);
      else
        p -= options.rate * std::sqrt(correction2) / correction1 * m / (std::sqrt(v) + options.epsilon);
    }
  }
}

void table_adagrad(Array64& value, const TableGradient& gradient, std::vector<double>& row_sum, double rate,
                   double epsilon, double weight_decay) {
  const std::int64_t width = value.axis(1);
  for (std::int64_t row = 0; row < value.axis(0); ++row) {
    const auto r = static_cast<std::size_t>(row);
    if (!gradient.touched.at(r)) continue;
    for (std::int64_t c = 0; c < width; ++c)
      row_sum.at(r) += gradient.sums.at(row, c) * gradient.sums.at(row, c) / static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) {
      const double g = gradient.sums.at(row, c);
      value.at(row, c) -= rate * weight_decay * value.at(row, c);
      if (g != 0) value.at(row, c) -= rate * g / (std::sqrt(row_sum.at(r)) + epsilon);
    }
  }
}

}  // namespace engram::reference
