#include "tests/reference/transformer_xl.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace engram::reference {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

double number(std::int64_t i) { return static_cast<double>(i); }
std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

/// W x.
Row times(const Array64& w, const Row& x) {
  require(w.axis(1) == static_cast<std::int64_t>(x.size()), "times: a column for every number");
  Row y(place(w.axis(0)), 0.0);
  for (std::int64_t i = 0; i < w.axis(0); ++i)
    for (std::int64_t j = 0; j < w.axis(1); ++j) y[place(i)] += w.at(i, j) * x[place(j)];
  return y;
}

Row sum(Row a, const Row& b) {
  require(a.size() == b.size(), "sum: equal lengths");
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Row normalised(const Row& x, const Array64& gain, const Array64& bias, double epsilon) {
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / number(static_cast<std::int64_t>(x.size()));
  for (const double value : x)
    variance += (value - mean) * (value - mean) / number(static_cast<std::int64_t>(x.size()));
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(gain.data[i] * (x[i] - mean) / std::sqrt(variance + epsilon) + bias.data[i]);
  return y;
}

Row row_of(const Array64& table, std::int64_t row) {
  Row values;
  for (std::int64_t i = 0; i < table.axis(1); ++i) values.push_back(table.at(row, i));
  return values;
}

std::int64_t bin_of(const TransformerXl& model, std::int64_t word, std::int64_t& first) {
  std::int64_t bin = 0;
  first = 0;
  while (bin < static_cast<std::int64_t>(model.cutoffs.size()) && word >= model.cutoffs[place(bin)])
    first = model.cutoffs[place(bin++)];
  return bin;
}

/// sqrt(D) P_b e_b (1.1).
Row embedded(const TransformerXl& model, std::int64_t word, std::int64_t width) {
  std::int64_t first = 0;
  const std::int64_t bin = bin_of(model, word, first);
  Row vector = row_of(model.tables[place(bin)], word - first);
  if (model.projections[place(bin)].given()) vector = times(model.projections[place(bin)], vector);
  for (double& value : vector) value *= std::sqrt(number(width));
  return vector;
}

/// A row of e or s for a distance (1.8): row t is distance Lmax - 1 - t; a clamp keeps the last rows.
std::int64_t shaw_row(std::int64_t rows, std::int64_t delta, std::int64_t clamp) {
  const std::int64_t first_kept = clamp > 0 ? std::max<std::int64_t>(0, rows - clamp) : 0;
  return std::max(first_kept, rows - 1 - delta);
}

double score(const XlRules& rules, const XlLayer& layer, std::int64_t head, const Row& query, const Row& key,
             std::int64_t delta) {
  const bool relative = rules.positions == XlPositions::relative, abcd = rules.positions == XlPositions::shaw_abcd;
  const bool shaw = abcd || rules.positions == XlPositions::shaw_ab;
  Row distance;  // r_delta or e[delta], all heads
  if (relative)
    distance = times(layer.position,
                     xl_sinusoid(number(rules.clamp > 0 ? std::min(delta, rules.clamp) : delta), layer.query.axis(1)));
  if (shaw) distance = row_of(layer.distance_keys, shaw_row(layer.distance_keys.axis(0), delta, rules.clamp));
  double total = 0;
  for (std::int64_t i = 0; i < rules.depth; ++i) {
    const std::size_t k = place(head * rules.depth + i);
    const double u = relative || abcd ? layer.content_bias.data[k] : 0;
    const double v = relative ? layer.position_bias.data[k] : 0;
    total += (query[k] + u) * key[k];
    if (relative || shaw) total += (query[k] + v) * distance[k];
  }
  if (abcd) total += layer.distance_biases.at(shaw_row(layer.distance_biases.axis(0), delta, rules.clamp), head);
  return total / std::sqrt(number(rules.depth));
}

/// Wo z of every position of the block; `inputs`: C, memory rows first (1.3).
Rows attention(const TransformerXl& model, const XlLayer& layer, const Rows& inputs, std::int64_t memory) {
  const XlRules& rules = model.rules;
  Rows keys, values, out;
  for (const Row& input : inputs) {
    keys.push_back(times(layer.key, input));
    values.push_back(times(layer.value, input));
  }
  for (std::int64_t i = 0; i + memory < static_cast<std::int64_t>(inputs.size()); ++i) {
    const Row query = times(layer.query, inputs[place(memory + i)]);
    Row mixed(query.size(), 0.0);
    for (std::int64_t head = 0; head < rules.heads; ++head) {
      std::vector<double> weights(inputs.size(), 0.0);
      double whole = 0;
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(inputs.size()); ++j) {
        const std::int64_t delta = i + memory - j;
        if (!xl_visible(rules.visibility, delta, rules.memory)) continue;
        weights[place(j)] = std::exp(score(rules, layer, head, query, keys[place(j)], delta));
        whole += weights[place(j)];
      }
      for (std::size_t j = 0; j < inputs.size(); ++j)
        for (std::int64_t k = head * rules.depth; k < (head + 1) * rules.depth; ++k)
          mixed[place(k)] += weights[j] / whole * values[j][place(k)];
    }
    out.push_back(times(layer.output, mixed));
  }
  return out;
}

Row feed_forward(const XlLayer& layer, const Row& x) {
  Row inner = sum(times(layer.inner, x), layer.inner_bias.data);
  for (double& value : inner) value = std::max(value, 0.0);
  return sum(times(layer.outer, inner), layer.outer_bias.data);
}

Row log_softmax(const Row& logits) {
  double whole = 0;
  for (const double logit : logits) whole += std::exp(logit);
  Row y;
  for (const double logit : logits) y.push_back(logit - std::log(whole));
  return y;
}

Array64 array_of(const Rows& rows) {
  Array64 result = zeros({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.front().size())});
  for (std::size_t i = 0; i < result.data.size(); ++i)
    result.data[i] = rows[i / rows.front().size()][i % rows.front().size()];
  return result;
}

}  // namespace

std::vector<double> xl_sinusoid(double position, std::int64_t width) {
  require(width % 2 == 0, "xl_sinusoid: an even width");
  Row row(place(width));
  for (std::int64_t m = 0; m < width / 2; ++m) {
    const double w = std::pow(10000.0, -2.0 * number(m) / number(width));
    row[place(m)] = std::sin(position * w);
    row[place(width / 2 + m)] = std::cos(position * w);
  }
  return row;
}

Array64 xl_shift(const Array64& x, std::int64_t memory) {
  Array64 y = zeros(x.shape);
  for (std::int64_t i = 0; i < x.axis(0); ++i)
    for (std::int64_t j = 0; j < x.axis(1) && j <= i + memory; ++j) y.at(i, j) = x.at(i, j + x.axis(0) - 1 - i);
  return y;
}

bool xl_visible(XlVisibility visibility, std::int64_t delta, std::int64_t memory) {
  switch (visibility) {
    case XlVisibility::last_memory:
      return delta >= 0 && delta <= memory - 1;
    case XlVisibility::last_memory_plus_1:
      return delta >= 0 && delta <= memory;
    default:
      return delta >= 0;
  }
}

XlRange xl_memory_range(std::int64_t present, std::int64_t block, std::int64_t extension, std::int64_t memory) {
  const std::int64_t end = present + std::max<std::int64_t>(0, block - extension);
  return {.begin = std::max<std::int64_t>(0, end - memory), .end = end};
}

Array64 xl_hidden(const TransformerXl& model, const std::vector<std::int64_t>& tokens, XlState& state,
                  std::int64_t extension) {
  const XlRules& rules = model.rules;
  const std::int64_t width = model.layers.front().query.axis(1), block = static_cast<std::int64_t>(tokens.size());
  if (!state.started) {
    state.memory.assign(model.layers.size(), Rows(place(rules.zeros ? rules.memory : 0), Row(place(width), 0.0)));
    state.started = true;
  }
  Rows hidden;
  for (std::int64_t i = 0; i < block; ++i) {
    hidden.push_back(embedded(model, tokens[place(i)], width));
    if (rules.positions != XlPositions::sinusoidal) continue;
    const std::int64_t p = rules.clamp > 0 ? std::min(block - 1 - i, rules.clamp) : block - 1 - i;
    hidden.back() = sum(hidden.back(), xl_sinusoid(number(p), width));
  }
  for (std::size_t n = 0; n < model.layers.size(); ++n) {
    const XlLayer& layer = model.layers[n];
    if (rules.positions == XlPositions::learned)
      for (std::int64_t i = 0; i < block; ++i)
        hidden[place(i)] = sum(hidden[place(i)], row_of(layer.positions, layer.positions.axis(0) - block + i));
    Rows all = state.memory[n];
    const auto present = static_cast<std::int64_t>(all.size());
    all.insert(all.end(), hidden.begin(), hidden.end());
    Rows inputs = all;
    if (rules.pre_norm)
      for (Row& row : inputs) row = normalised(row, layer.attention_gain, layer.attention_bias, rules.epsilon);
    const Rows mixed = attention(model, layer, inputs, present);
    for (std::int64_t i = 0; i < block; ++i) {
      Row& h = hidden[place(i)];
      Row o = sum(h, mixed[place(i)]);
      if (rules.pre_norm) {
        h = sum(o, feed_forward(layer, normalised(o, layer.forward_gain, layer.forward_bias, rules.epsilon)));
      } else {
        o = normalised(o, layer.attention_gain, layer.attention_bias, rules.epsilon);
        h = normalised(sum(o, feed_forward(layer, o)), layer.forward_gain, layer.forward_bias, rules.epsilon);
      }
    }
    const XlRange kept = xl_memory_range(present, block, extension, rules.memory);
    state.memory[n] = Rows(all.begin() + kept.begin, all.begin() + kept.end);
  }
  return array_of(hidden);
}

Array64 xl_log_probabilities(const TransformerXl& model, const Array64& hidden) {
  Rows result;
  const auto bins = static_cast<std::int64_t>(model.out_tables.size()), tails = bins - 1;
  for (std::int64_t i = 0; i < hidden.axis(0); ++i) {
    const Row x = row_of(hidden, i);
    const auto logits = [&](std::int64_t bin, const Row& y) {
      return sum(times(model.out_tables[place(bin)], y), model.out_biases[place(bin)].data);
    };
    const auto projected = [&](std::int64_t bin) {
      const Array64& q = model.out_projections[place(bin)];
      if (!q.given()) return x;
      Row y(place(q.axis(1)), 0.0);
      for (std::int64_t d = 0; d < q.axis(0); ++d)
        for (std::int64_t e = 0; e < q.axis(1); ++e) y[place(e)] += q.at(d, e) * x[place(d)];
      return y;
    };
    const Row y0 = projected(0);
    Row head = logits(0, y0);
    const std::size_t shortlist = head.size();
    if (tails > 0) {
      const Row slots = sum(times(model.cluster_weight, y0), model.cluster_bias.data);
      head.insert(head.end(), slots.begin(), slots.end());
    }
    head = log_softmax(head);
    Row all(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(shortlist));
    for (std::int64_t bin = 1; bin < bins; ++bin) {
      const std::int64_t slot = model.rules.reversed ? tails - bin : bin - 1;
      for (const double within : log_softmax(logits(bin, projected(bin))))
        all.push_back(head[shortlist + place(slot)] + within);
    }
    result.push_back(all);
  }
  return array_of(result);
}

}  // namespace engram::reference
