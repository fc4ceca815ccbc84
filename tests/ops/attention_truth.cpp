#include "tests/ops/attention_truth.hpp"

#include "autograd/functions/attention.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/sanitizers.hpp"
#include "tests/ops/packed_past.hpp"
#include "tests/reference/span_attention.hpp"

namespace engram::harness {
namespace {

using reference::SpanAttentionInputs;
using reference::SpanAttentionOptions;

std::int64_t up_to_multiple_of_8(std::int64_t n) { return n + (8 - n % 8) % 8; }

/// Columns [head D, head D + D) of an array whose last axis holds the heads side by side.
Array64 head_columns(const Array64& x, std::int64_t head, std::int64_t depth) {
  if (!x.given()) return {};
  Array64 part = x;
  part.shape.back() = depth;
  part.data.clear();
  const std::int64_t width = x.shape.back();
  for (std::int64_t row = 0; row * width < x.count(); ++row)
    for (std::int64_t i = 0; i < depth; ++i)
      part.data.push_back(x.data[static_cast<std::size_t>(row * width + head * depth + i)]);
  return part;
}
void add_head_columns(const Array64& part, std::int64_t head, Array64& whole) {
  if (!part.given()) return;
  const std::int64_t depth = part.shape.back(), width = whole.shape.back();
  for (std::int64_t k = 0; k < part.count(); ++k)
    whole.data[static_cast<std::size_t>(k / depth * width + head * depth + k % depth)] +=
        part.data[static_cast<std::size_t>(k)];
}

/// Entry `head` of the first axis, which stays as an axis of size 1.
Array64 head_entry(const Array64& x, std::int64_t head) {
  if (!x.given()) return {};
  Array64 part{x.shape, {}};
  part.shape[0] = 1;
  const std::int64_t size = x.count() / x.shape[0];
  part.data.assign(x.data.begin() + head * size, x.data.begin() + (head + 1) * size);
  return part;
}
void set_head_entry(const Array64& part, std::int64_t head, Array64& whole) {
  for (std::int64_t k = 0; k < part.count(); ++k)
    whole.data[static_cast<std::size_t>(head * part.count() + k)] = part.data[static_cast<std::size_t>(k)];
}

/// One head's share of the operation.
struct HeadProblem {
  SpanAttentionInputs in;
  SpanAttentionOptions options;
};

class Problem {
 public:
  Problem(std::span<const Array64> x, const AttentionOptions& options, std::uint32_t operation)
      : x_(x), options_(options), operation_(operation) {
    depth_ = x[kContentQuery].axis(2) / options.heads;
  }

  /// A position table as head h sees it.
  Array64 positions(AttentionArgument table, std::int64_t h) const {
    return head_columns(x_[table], shared(table) ? 0 : h, depth_);
  }
  void add_positions(const Array64& part, AttentionArgument table, std::int64_t h, Array64& whole) const {
    add_head_columns(part, shared(table) ? 0 : h, whole);
  }
  /// Whether every query has its own span.
  bool query_spans() const { return x_[kSpan].given() && x_[kSpan].rank() == 3; }

  HeadProblem head(std::int64_t h) const {
    const bool context = options_.max_distance > 0;
    const std::int64_t window = context ? options_.windows.window[static_cast<std::size_t>(h)] : 0;
    HeadProblem p;
    p.options.score_scale = options_.score_scale;
    p.options.slot_score_scale = options_.slot_score_scale;
    p.options.slot_value_scale = options_.slot_value_scale;
    p.options.min_distance = options_.min_distance;
    p.options.max_distance = context ? window : options_.min_distance - 1;
    p.options.span_length = options_.max_distance;
    p.options.ramp = options_.ramp;
    p.options.mask_offset = options_.mask_offset;
    p.options.ramp_gradient = static_cast<reference::RampGradient>(options_.ramp_gradient);
    if (x_[kPastValid].given()) {
      p.options.pad = reference::Pad::mask;
      p.options.valid_past = integers(x_[kPastValid]);
    }
    if (options_.dropout.active()) p.options.dropout = multiplier(h, p.options.max_distance);

    p.in.content_query = head_columns(x_[kContentQuery], h, depth_);
    p.in.position_query = head_columns(x_[kPositionQuery], h, depth_);
    p.in.keys = reference::zeros(p.in.content_query.shape);
    p.in.values = p.in.keys;
    if (context) {
      p.in.keys = head_columns(x_[kKeys], h, depth_);
      p.in.values = head_columns(x_[kValues], h, depth_);
      p.in.past_keys = past(x_[kPastKeys], h);
      p.in.past_values = past(x_[kPastValues], h);
    }
    p.in.position_keys = positions(kPositionKeys, h);
    p.in.position_values = positions(kPositionValues, h);
    p.in.slot_keys = head_entry(x_[kSlotKeys], h);
    p.in.slot_values = head_entry(x_[kSlotValues], h);
    p.in.span = query_spans() ? head_columns(x_[kSpan], h, 1) : head_entry(x_[kSpan], h);
    return p;
  }

  std::int64_t depth() const { return depth_; }

 private:
  bool shared(AttentionArgument table) const { return x_[table].given() && x_[table].axis(1) == depth_; }

  Array64 past(const Array64& packed, std::int64_t h) const {
    if (!packed.given()) return {};
    return unpacked_past(packed, options_.windows, x_[kContentQuery].axis(0), static_cast<std::size_t>(h),
                         options_.past_count);
  }

  reference::DropoutMultiplier multiplier(std::int64_t h, std::int64_t farthest) const {
    const std::int64_t heads = options_.heads, block = x_[kContentQuery].axis(1), nearest = options_.min_distance;
    const std::int64_t persistent = x_[kSlotKeys].given() ? x_[kSlotKeys].axis(1) : 0;
    const std::int64_t reach = up_to_multiple_of_8(options_.max_distance + 1 - nearest);
    const std::int64_t stride = up_to_multiple_of_8(reach + persistent);
    const std::int64_t context = farthest + 1 - nearest, longest = options_.max_distance;
    const RandomStream stream = random_stream(operation_);
    const DropoutRule rule = options_.dropout;
    return [=](std::int64_t b, std::int64_t, std::int64_t m, std::int64_t slot) {
      const std::int64_t place = slot < context ? longest - (nearest + slot) : reach + slot - context;
      const std::int64_t element = ((b * heads + h) * block + m) * stride + place;
      const bool kept = rule.keeps(stream.draw(static_cast<std::uint64_t>(element / 8)), static_cast<int>(element % 8));
      return kept ? rule.multiplier : 0.0;
    };
  }

  std::span<const Array64> x_;
  const AttentionOptions& options_;
  std::uint32_t operation_;
  std::int64_t depth_;
};

Array64 zeros_like(const Array64& x) { return x.given() ? reference::zeros(x.shape) : Array64{}; }

}  // namespace

AttentionTruth attention_truth(std::span<const Array64> x, const AttentionOptions& options, std::uint32_t operation) {
  const Problem problem(x, options, operation);
  const Array64& query = x[kContentQuery];
  AttentionTruth truth{reference::zeros(query.shape), reference::zeros({query.axis(0), options.heads, query.axis(1)})};
  for (std::int64_t h = 0; h < options.heads; ++h) {
    const HeadProblem p = problem.head(h);
    const reference::SpanAttentionResult result = reference::span_attention(p.in, p.options);
    add_head_columns(result.out, h, truth.out);
    for (std::int64_t b = 0; b < query.axis(0); ++b)
      for (std::int64_t m = 0; m < query.axis(1); ++m) truth.lse.at(b, h, m) = result.lse.at(b, 0, m);
  }
  return truth;
}

std::vector<Array64> attention_truth_gradients(std::span<const Array64> x, const AttentionOptions& options,
                                               const Array64& dout, std::uint32_t operation) {
  const Problem problem(x, options, operation);
  std::vector<Array64> all;
  for (std::size_t i = 0; i < kPastValid; ++i) all.push_back(zeros_like(x[i]));
  all.emplace_back();
  for (std::int64_t h = 0; h < options.heads; ++h) {
    const HeadProblem p = problem.head(h);
    const SpanAttentionInputs g =
        reference::span_attention_gradients(p.in, p.options, head_columns(dout, h, problem.depth()));
    add_head_columns(g.content_query, h, all[kContentQuery]);
    add_head_columns(g.position_query, h, all[kPositionQuery]);
    if (options.max_distance > 0) {
      add_head_columns(g.keys, h, all[kKeys]);
      add_head_columns(g.values, h, all[kValues]);
      pack_past(g.past_keys, options.windows, static_cast<std::size_t>(h), options.past_count, all[kPastKeys]);
      pack_past(g.past_values, options.windows, static_cast<std::size_t>(h), options.past_count, all[kPastValues]);
    }
    problem.add_positions(g.position_keys, kPositionKeys, h, all[kPositionKeys]);
    problem.add_positions(g.position_values, kPositionValues, h, all[kPositionValues]);
    set_head_entry(g.slot_keys, h, all[kSlotKeys]);
    set_head_entry(g.slot_values, h, all[kSlotValues]);
    if (problem.query_spans())
      add_head_columns(g.span, h, all[kSpan]);
    else
      set_head_entry(g.span, h, all[kSpan]);
  }
  return all;
}

std::vector<Input> attention_inputs(const AttentionOptions& options, const AttentionInputSizes& sizes) {
  using Positions = AttentionInputSizes::Positions;
  const std::int64_t width = options.heads * sizes.depth;
  const Shape block{sizes.streams, sizes.block, width};
  std::vector<Input> in(kAttentionArguments, absent());
  in[kContentQuery] = normal(block);
  if (sizes.position_query) in[kPositionQuery] = normal(block);
  if (options.max_distance > 0) {
    in[kKeys] = in[kValues] = normal(block);
    if (options.windows.total > 0)
      in[kPastKeys] = in[kPastValues] = normal({sizes.streams * options.windows.total, sizes.depth});
    // One row more than any head needs: its gradient must come out as zero.
    const std::int64_t rows = options.windows.longest + 2 - options.min_distance;
    const auto table = [&](Positions positions) {
      if (positions == Positions::none) return absent();
      return normal({rows, positions == Positions::shared ? sizes.depth : width});
    };
    in[kPositionKeys] = table(sizes.positions);
    in[kPositionValues] = table(sizes.position_values);
  }
  if (sizes.slots >= 0) in[kSlotKeys] = in[kSlotValues] = normal({options.heads, sizes.slots, sizes.depth});
  if (!sizes.span.empty()) {
    Shape shape{options.heads};
    std::vector<double> spans = sizes.span;
    if (sizes.query_spans) {
      shape = {sizes.streams, sizes.block, options.heads};
      spans.resize(static_cast<std::size_t>(shape.count()));
      for (std::size_t k = 0; k < spans.size(); ++k) spans[k] = sizes.span[k % sizes.span.size()];
    }
    in[kSpan] = values(shape, std::move(spans));
    in[kSpan].differentiable = !sizes.span_is_constant;
  }
  if (!sizes.past_valid.empty()) in[kPastValid] = harness::integers({sizes.streams}, sizes.past_valid);
  return in;
}

OpCase attention_case(std::string name, const AttentionOptions& options, std::vector<AttentionInputSizes> sets,
                      std::int64_t keep_bytes) {
  OpCase op;
  op.name = std::move(name);
  for (const AttentionInputSizes& sizes : sets) op.inputs.push_back(attention_inputs(options, sizes));
  op.function = [options, keep_bytes](std::span<const Variable> x) {
    AttentionResult result = attention({{.content_query = x[kContentQuery],
                                         .position_query = x[kPositionQuery],
                                         .past_keys = x[kPastKeys],
                                         .past_values = x[kPastValues],
                                         .keys = x[kKeys],
                                         .values = x[kValues],
                                         .position_keys = x[kPositionKeys],
                                         .position_values = x[kPositionValues],
                                         .slot_keys = x[kSlotKeys],
                                         .slot_values = x[kSlotValues],
                                         .span = x[kSpan]},
                                        x[kPastValid].value()},
                                       options, keep_bytes);
    Variable lse = result.out.tape().constant(result.lse);
    return std::array{std::move(result.out), std::move(lse)};
  };
  op.reference = [options](std::span<const Array64> x) {
    AttentionTruth truth = attention_truth(x, options);
    return std::vector{std::move(truth.out), std::move(truth.lse)};
  };
  op.dropout = options.dropout.active();
  // Gradients of scores are differences of numbers near 1, often exactly zero.
  op.tolerance.f32 = 5e-6;
  op.tolerance.negligible = 0.1;
  // Weights and gradients of scores are rounded once more, as operands of the second product; what is exactly zero in
  // truth, with one slot to see, is then the difference of two rounded numbers.
  op.tolerance.bf16 = op.tolerance.bf16_sums = 12 * kRounding;
  op.roles.assign(kSpan + 1, Role::activation);
  op.roles[kPositionKeys] = op.roles[kPositionValues] = op.roles[kSlotKeys] = op.roles[kSlotValues] = Role::matrix;
  op.roles[kSpan] = Role::vector;
  return op;
}

AttentionCases::AttentionCases(std::initializer_list<AttentionCase> cases) {
  for (const AttentionCase& entry : cases) {
    OpCases{attention_case(entry.name, entry.options, entry.sets)};
    // Kept weights take the same threads, and ThreadSanitizer minutes.
    if (!thread_sanitizer_watches())
      OpCases{attention_case(entry.name + ", weights kept", entry.options, entry.sets, std::int64_t{1} << 30)};
  }
}

AttentionOptions attention_options(int max_distance, std::vector<std::int32_t> windows) {
  AttentionOptions options;
  options.heads = static_cast<int>(windows.size());
  options.score_scale = 0.6;
  options.slot_score_scale = 0.9;
  options.slot_value_scale = 1.5;
  options.max_distance = max_distance;
  if (max_distance > 0) options.windows = HeadWindows(std::move(windows));
  return options;
}

}  // namespace engram::harness
