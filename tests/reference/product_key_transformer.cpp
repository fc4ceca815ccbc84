#include "tests/reference/product_key_transformer.hpp"

#include <cmath>
#include <utility>

namespace engram::reference {
namespace {

using Row = std::vector<double>;

double& element(Row& row, std::int64_t i) { return row[static_cast<std::size_t>(i)]; }
double element(const Row& row, std::int64_t i) { return row[static_cast<std::size_t>(i)]; }

Row zero_row(std::int64_t count) { return Row(static_cast<std::size_t>(count), 0.0); }

Row sum_of(const Row& a, const Row& b) {
  require(a.size() == b.size(), "sum_of: rows of equal length");
  Row sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

Row map(const HostMap& map, const Row& x) {
  Row y = zero_row(map.weight.axis(0));
  for (std::int64_t i = 0; i < map.weight.axis(0); ++i) {
    element(y, i) = map.bias.at(i);
    for (std::int64_t j = 0; j < map.weight.axis(1); ++j) element(y, i) += map.weight.at(i, j) * element(x, j);
  }
  return y;
}

Row normalised(const HostNorm& norm, const Row& x, double epsilon) {
  const auto width = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / width;
  for (const double value : x) variance += (value - mean) * (value - mean) / width;
  Row y = x;
  for (std::int64_t i = 0; i < norm.gain.axis(0); ++i)
    element(y, i) = norm.gain.at(i) * (element(x, i) - mean) / std::sqrt(variance + epsilon) + norm.bias.at(i);
  return y;
}

/// Position t sees positions 0 .. t of the window. seen: [heads, M, M], gets the weights.
std::vector<Row> attention(const HostTransformer& model, const HostLayer& layer, const std::vector<Row>& x,
                           Array64& seen) {
  std::vector<Row> queries, keys, values, out;
  for (const Row& row : x) {
    queries.push_back(map(layer.query, row));
    keys.push_back(map(layer.key, row));
    values.push_back(map(layer.value, row));
  }
  const std::int64_t width = model.table.axis(1), depth = width / model.heads;
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row mixed = zero_row(width);
    for (std::int64_t head = 0; head < model.heads; ++head) {
      const std::int64_t first = head * depth;
      Row weights;
      double total = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::int64_t i = first; i < first + depth; ++i) score += element(queries[t], i) * element(keys[s], i);
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(depth))));
        total += weights.back();
      }
      for (std::size_t s = 0; s <= t; ++s)
        seen.at(head, static_cast<std::int64_t>(t), static_cast<std::int64_t>(s)) = weights[s] / total;
      for (std::size_t s = 0; s <= t; ++s)
        for (std::int64_t i = first; i < first + depth; ++i)
          element(mixed, i) += weights[s] / total * element(values[s], i);
    }
    out.push_back(map(layer.output, mixed));
  }
  return out;
}

Row feed_forward(const HostTransformer& model, const HostLayer& layer, const Row& x) {
  Row inside = map(layer.inner, x);
  for (double& value : inside)
    value = model.gelu ? value * 0.5 * (1 + std::erf(value / std::sqrt(2.0))) : value > 0 ? value : 0.0;
  return map(layer.outer, inside);
}

void pass(const HostTransformer& model, const HostLayer& layer, std::vector<Row>& x, Array64& seen) {
  std::vector<Row> input = x;
  if (model.pre_norm)
    for (Row& row : input) row = normalised(layer.attention_norm, row, model.epsilon);
  const std::vector<Row> mixed = attention(model, layer, input, seen);
  for (std::size_t t = 0; t < x.size(); ++t) {
    x[t] = sum_of(x[t], mixed[t]);
    if (model.pre_norm) {
      x[t] = sum_of(x[t], feed_forward(model, layer, normalised(layer.forward_norm, x[t], model.epsilon)));
    } else {
      x[t] = normalised(layer.attention_norm, x[t], model.epsilon);
      x[t] = normalised(layer.forward_norm, sum_of(x[t], feed_forward(model, layer, x[t])), model.epsilon);
    }
  }
}

}  // namespace

Array64 host_log_probabilities(const HostTransformer& model, const std::vector<std::int64_t>& tokens,
                               std::vector<Array64>* weights) {
  const std::int64_t words = model.table.axis(0), width = model.table.axis(1);
  std::vector<Row> x;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Row sum = zero_row(width);
    for (std::int64_t i = 0; i < width; ++i)
      element(sum, i) = model.table.at(tokens[t], i) + model.positions.at(static_cast<std::int64_t>(t), i);
    x.push_back(normalised(model.embedding_norm, sum, model.epsilon));
  }
  const auto length = static_cast<std::int64_t>(tokens.size());
  for (const HostLayer& layer : model.layers) {
    Array64 seen = zeros({model.heads, length, length});
    pass(model, layer, x, seen);
    if (weights != nullptr) weights->push_back(std::move(seen));
  }
  Array64 all = zeros({static_cast<std::int64_t>(tokens.size()), words});
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const Row hidden = model.pre_norm ? normalised(model.output_norm, x[t], model.epsilon) : x[t];
    double total = 0;
    for (std::int64_t word = 0; word < words; ++word) {
      double logit = model.output_bias.at(word);
      for (std::int64_t i = 0; i < width; ++i) logit += model.table.at(word, i) * element(hidden, i);
      all.at(static_cast<std::int64_t>(t), word) = logit;
      total += std::exp(logit);
    }
    for (std::int64_t word = 0; word < words; ++word) all.at(static_cast<std::int64_t>(t), word) -= std::log(total);
  }
  return all;
}

}  // namespace engram::reference
