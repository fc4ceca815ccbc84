#include "tests/reference/span_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/reference/span_rules.hpp"

namespace engram::reference {
namespace {

using Shape64 = std::vector<std::int64_t>;

constexpr double kLargestExponent = 18;

/// One query of one head: everything the equations name, per slot.
struct Row {
  std::vector<bool> visible;     // false: the position does not exist
  std::vector<double> mask;      // m_i, 0 for positions that do not exist
  std::vector<double> unmasked;  // e_i = exp(s_i - smax) / Z
  std::vector<double> weight;    // a_i = m_i e_i
  double lse = -std::numeric_limits<double>::infinity();
};

/// Sizes and element access; the only place that knows where a distance lies.
class Problem {
 public:
  Problem(const SpanAttentionInputs& inputs, const SpanAttentionOptions& options) : in(inputs), opt(options) {
    require(in.content_query.rank() == 3 && opt.heads >= 1 && in.content_query.axis(2) % opt.heads == 0,
            "span_attention: content_query [B, M, H*D]");
    streams = in.content_query.axis(0);
    queries = in.content_query.axis(1);
    width = in.content_query.axis(2);
    heads = opt.heads;
    depth = width / heads;
    require(in.keys.shape == in.content_query.shape && in.values.shape == in.content_query.shape,
            "span_attention: keys and values [B, M, H*D]");
    require(!in.position_query.given() || in.position_query.shape == in.content_query.shape,
            "span_attention: position_query [B, M, H*D]");
    past = in.past_keys.given() ? in.past_keys.axis(1) : 0;
    require(!in.past_keys.given() || in.past_keys.shape == Shape64{streams, past, width},
            "span_attention: past_keys [B, C, H*D]");
    require(in.past_values.shape == in.past_keys.shape, "span_attention: past_values like past_keys");
    require(opt.min_distance >= 0 && opt.max_distance >= opt.min_distance - 1, "span_attention: no future positions");
    context = opt.max_distance - opt.min_distance + 1;
    for (const Array64* table : {&in.position_keys, &in.position_values}) {
      if (!table->given()) continue;
      require(table->rank() == 2 && table->axis(0) >= context, "span_attention: P rows of positions");
      require(table->axis(1) == depth || table->axis(1) == width, "span_attention: positions [P, D] or [P, H*D]");
    }
    persistent = in.slot_keys.given() ? in.slot_keys.axis(1) : 0;
    require(!in.slot_keys.given() || in.slot_keys.shape == Shape64{heads, persistent, depth},
            "span_attention: slot_keys [H, N, D]");
    require(in.slot_values.shape == in.slot_keys.shape, "span_attention: slot_values like slot_keys");
    require(!in.span.given() || in.span.shape == Shape64{heads} || in.span.shape == Shape64{streams, queries, heads},
            "span_attention: span [H] or [B, M, H]");
    require(opt.valid_past.empty() || static_cast<std::int64_t>(opt.valid_past.size()) == streams,
            "span_attention: valid_past [B]");
  }

  bool masked() const { return in.span.given() && opt.ramp > 0; }
  std::int64_t slots() const { return context + persistent; }
  std::int64_t distance(std::int64_t slot) const { return opt.min_distance + slot; }
  std::int64_t span_length() const { return opt.span_length > 0 ? opt.span_length : opt.max_distance; }
  /// Of component i of head h.
  std::int64_t position_column(const Array64& table, std::int64_t h, std::int64_t i) const {
    return table.axis(1) == depth ? i : h * depth + i;
  }
  const Array64& position_query() const { return in.position_query.given() ? in.position_query : in.content_query; }

  /// The span of a query, in `spans` of [H] or [B, M, H].
  template <class Array>
  static decltype(auto) span_of(Array& spans, std::int64_t b, std::int64_t h, std::int64_t t) {
    return spans.rank() == 1 ? spans.at(h) : spans.at(b, t, h);
  }
  double raw_mask(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t slot) const {
    return raw_span_mask(distance(slot), span_of(in.span, b, h, t), span_length(), opt.ramp, opt.mask_offset);
  }

  /// Whether the position `distance` before query t takes part, as itself or as a zero vector.
  bool exists(std::int64_t b, std::int64_t t, std::int64_t slot) const {
    if (opt.pad == Pad::attend_zero) return true;
    const std::int64_t before_block = distance(slot) - t;
    const std::int64_t valid = opt.valid_past.empty() ? past : opt.valid_past[static_cast<std::size_t>(b)];
    return before_block <= std::min(valid, past);
  }

  /// Element `column` at the position `distance` before query t, in (past, block); null where a zero vector stands.
  template <class Array>
  static auto element(Array& old, Array& block, std::int64_t past_count, std::int64_t b, std::int64_t time,
                      std::int64_t column) -> decltype(block.data.data()) {
    if (time >= 0) return &block.data[static_cast<std::size_t>((b * block.shape[1] + time) * block.shape[2] + column)];
    if (time < -past_count) return nullptr;
    const std::int64_t row = b * past_count + past_count + time;
    return &old.data[static_cast<std::size_t>(row * block.shape[2] + column)];
  }
  double key(std::int64_t b, std::int64_t time, std::int64_t column) const {
    const double* found = element(in.past_keys, in.keys, past, b, time, column);
    return found ? *found : 0.0;
  }
  double value(std::int64_t b, std::int64_t time, std::int64_t column) const {
    const double* found = element(in.past_values, in.values, past, b, time, column);
    return found ? *found : 0.0;
  }

  double multiplier(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t slot) const {
    return opt.dropout ? opt.dropout(b, h, t, slot) : 1.0;
  }

  double score(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t slot) const {
    double total = 0;
    if (slot >= context) {
      for (std::int64_t i = 0; i < depth; ++i)
        total += in.content_query.at(b, t, h * depth + i) * in.slot_keys.at(h, slot - context, i);
      return opt.slot_score_scale * total;
    }
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::int64_t column = h * depth + i;
      total += in.content_query.at(b, t, column) * key(b, t - distance(slot), column);
      if (in.position_keys.given())
        total += position_query().at(b, t, column) * in.position_keys.at(slot, position_column(in.position_keys, h, i));
    }
    return opt.score_scale * total;
  }

  Row row(std::int64_t b, std::int64_t h, std::int64_t t) const {
    const auto count = static_cast<std::size_t>(slots());
    Row result{std::vector<bool>(count, true), std::vector<double>(count, 1.0), std::vector<double>(count, 0.0),
               std::vector<double>(count, 0.0)};
    std::vector<double> scores(count);
    double maximum = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::size_t s = 0; s < count; ++s) {
      const auto slot = static_cast<std::int64_t>(s);
      if (slot < context) {
        result.visible[s] = exists(b, t, slot);
        if (!result.visible[s])
          result.mask[s] = 0;
        else if (masked())
          result.mask[s] = std::clamp(raw_mask(b, h, t, slot), 0.0, 1.0);
      }
      scores[s] = score(b, h, t, slot);
      if (result.mask[s] > 0) maximum = std::max(maximum, scores[s]);
    }
    if (maximum == -std::numeric_limits<double>::infinity()) return result;
    for (std::size_t s = 0; s < count; ++s)
      if (result.mask[s] > 0) total += result.mask[s] * std::exp(scores[s] - maximum);
    for (std::size_t s = 0; s < count; ++s) {
      if (!result.visible[s]) continue;
      result.unmasked[s] = std::exp(std::min(scores[s] - maximum, kLargestExponent)) / total;
      result.weight[s] = result.mask[s] * result.unmasked[s];
    }
    result.lse = maximum + std::log(total);
    return result;
  }

  const SpanAttentionInputs& in;
  const SpanAttentionOptions& opt;
  std::int64_t streams = 0, queries = 0, width = 0, heads = 0, depth = 0, past = 0, context = 0, persistent = 0;
};

bool passes_gradient(double raw, RampGradient rule) {
  switch (rule) {
    case RampGradient::inclusive:
      return raw >= 0 && raw <= 1;
    case RampGradient::right:
      return raw >= 0 && raw < 1;
    case RampGradient::open:
      return raw > 0 && raw < 1;
  }
  return false;
}

/// The value of a slot times its fixed factor.
double slot_value(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t slot, std::int64_t i) {
  if (slot >= p.context) return p.opt.slot_value_scale * p.in.slot_values.at(h, slot - p.context, i);
  const double value = p.value(b, t - p.distance(slot), h * p.depth + i);
  if (!p.in.position_values.given()) return value;
  return value + p.in.position_values.at(slot, p.position_column(p.in.position_values, h, i));
}

/// Adds one query's share to all gradients ([all-attention 2], line by line).
void add_row_gradients(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t t, const Array64& out_gradient,
                       SpanAttentionInputs& grad) {
  const Row row = p.row(b, h, t);
  const auto count = static_cast<std::size_t>(p.slots());
  std::vector<double> g(count, 0.0);
  double mean = 0;
  for (std::size_t s = 0; s < count; ++s) {
    const auto slot = static_cast<std::int64_t>(s);
    for (std::int64_t i = 0; i < p.depth; ++i)
      g[s] += out_gradient.at(b, t, h * p.depth + i) * slot_value(p, b, h, t, slot, i);
    g[s] *= p.multiplier(b, h, t, slot);
    mean += row.weight[s] * g[s];
  }
  Array64& position_query_grad = p.in.position_query.given() ? grad.position_query : grad.content_query;
  for (std::size_t s = 0; s < count; ++s) {
    const auto slot = static_cast<std::int64_t>(s);
    const double score_grad = row.weight[s] * (g[s] - mean);
    const double kept = row.weight[s] * p.multiplier(b, h, t, slot);
    for (std::int64_t i = 0; i < p.depth; ++i) {
      const std::int64_t column = h * p.depth + i;
      const double query = p.in.content_query.at(b, t, column), out_grad = out_gradient.at(b, t, column);
      if (slot >= p.context) {
        const std::int64_t n = slot - p.context;
        grad.content_query.at(b, t, column) += p.opt.slot_score_scale * score_grad * p.in.slot_keys.at(h, n, i);
        grad.slot_keys.at(h, n, i) += p.opt.slot_score_scale * score_grad * query;
        grad.slot_values.at(h, n, i) += p.opt.slot_value_scale * kept * out_grad;
        continue;
      }
      const std::int64_t time = t - p.distance(slot);
      const double scaled = p.opt.score_scale * score_grad;
      grad.content_query.at(b, t, column) += scaled * p.key(b, time, column);
      if (double* key = Problem::element(grad.past_keys, grad.keys, p.past, b, time, column)) *key += scaled * query;
      if (double* value = Problem::element(grad.past_values, grad.values, p.past, b, time, column))
        *value += kept * out_grad;
      if (p.in.position_values.given())
        grad.position_values.at(slot, p.position_column(p.in.position_values, h, i)) += kept * out_grad;
      if (p.in.position_keys.given()) {
        const std::int64_t position_column = p.position_column(p.in.position_keys, h, i);
        position_query_grad.at(b, t, column) += scaled * p.in.position_keys.at(slot, position_column);
        grad.position_keys.at(slot, position_column) += scaled * p.position_query().at(b, t, column);
      }
    }
    if (slot < p.context && p.masked() && row.visible[s] &&
        passes_gradient(p.raw_mask(b, h, t, slot), p.opt.ramp_gradient))
      Problem::span_of(grad.span, b, h, t) +=
          static_cast<double>(p.span_length()) / p.opt.ramp * row.unmasked[s] * (g[s] - mean);
  }
}

Array64 zeros_like(const Array64& x) { return x.given() ? zeros(x.shape) : Array64{}; }

}  // namespace

SpanAttentionResult span_attention(const SpanAttentionInputs& inputs, const SpanAttentionOptions& options) {
  const Problem p(inputs, options);
  SpanAttentionResult result{zeros({p.streams, p.queries, p.width}), zeros({p.streams, p.heads, p.queries, p.slots()}),
                             zeros({p.streams, p.heads, p.queries})};
  for (std::int64_t b = 0; b < p.streams; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t t = 0; t < p.queries; ++t) {
        const Row row = p.row(b, h, t);
        result.lse.at(b, h, t) = row.lse;
        for (std::int64_t slot = 0; slot < p.slots(); ++slot) {
          const double weight = row.weight[static_cast<std::size_t>(slot)];
          result.weights.at(b, h, t, slot) = weight;
          const double kept = weight * p.multiplier(b, h, t, slot);
          for (std::int64_t i = 0; i < p.depth; ++i)
            result.out.at(b, t, h * p.depth + i) += kept * slot_value(p, b, h, t, slot, i);
        }
      }
  return result;
}

SpanAttentionInputs span_attention_gradients(const SpanAttentionInputs& inputs, const SpanAttentionOptions& options,
                                             const Array64& out_gradient) {
  const Problem p(inputs, options);
  require(out_gradient.shape == inputs.content_query.shape, "span_attention: out_gradient [B, M, H*D]");
  SpanAttentionInputs grad{zeros_like(inputs.content_query), zeros_like(inputs.position_query),
                           zeros_like(inputs.past_keys),     zeros_like(inputs.past_values),
                           zeros_like(inputs.keys),          zeros_like(inputs.values),
                           zeros_like(inputs.position_keys), zeros_like(inputs.position_values),
                           zeros_like(inputs.slot_keys),     zeros_like(inputs.slot_values),
                           zeros_like(inputs.span)};
  for (std::int64_t b = 0; b < p.streams; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t t = 0; t < p.queries; ++t) add_row_gradients(p, b, h, t, out_gradient, grad);
  return grad;
}

}  // namespace engram::reference
