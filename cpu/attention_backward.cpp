#include <cmath>
#include <optional>

#include "cpu/attention_tile.hpp"
#include "cpu/dropout_bits.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

constexpr double kLargestBoundaryExponent = 18;  // see the declaration: a slot outside the mask is not part of lse

// Sums over streams that one work item keeps for itself; they are added up in order afterwards.
template <class T>
struct Partial {
  T* slot_keys = nullptr;    // [N, D]
  T* slot_values = nullptr;  // [N, D]
  T* positions = nullptr;    // [slots, D], by place in the band
  double* span = nullptr;
};

template <class T>
struct BackwardCall {
  const AttentionData<T>& data;
  RandomStream random;
  const T* out;
  const T* lse;
  const T* dout;
  AttentionGradients& gradients;

  static T* of(const AttentionGradients::Target& target) { return target ? target.tensor.template data<T>() : nullptr; }
};

// Buffers of a tile, all [queries, row_length] but the last two.
template <class T>
struct Scratch {
  T *weights, *dscores, *positions, *multipliers;
  Scratch(T* memory, const AttentionTile<T>& tile)
      : weights(memory),
        dscores(weights + tile.queries * tile.row_length),
        positions(dscores + tile.queries * tile.row_length),
        multipliers(positions + tile.queries * tile.head_plan.slots) {}
};

// One row: scores -> weights times dropout (for the values' gradient), dweights -> gradient of the scores.
template <class T>
void backward_row(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t i, T* weights, T* dscores,
                  T* multipliers, double* dspan) {
  const AttentionSizes& s = call.data.plan.sizes;
  const AttentionOptions& options = call.data.options;
  const HeadPlan& head = tile.head_plan;
  const std::int64_t m = tile.first + i, low = tile.first_visible(i), count = head.slots - low;
  const T lse = call.lse[(tile.stream * s.heads + tile.head) * s.block + m];
  if (count + tile.persistent == 0) {
    vec(weights, tile.row_length).setZero();
    vec(dscores, tile.row_length).setZero();
    return;
  }
  const T total = (vec(tile.query_row(call.dout, m), s.depth) * vec(tile.query_row(call.out, m), s.depth)).sum();
  const std::uint64_t element = s.dropout_row(tile.stream, tile.head, m);
  const auto slot_of_place = [&](std::int64_t place) {
    return element + static_cast<std::uint64_t>(options.max_distance - head.window + place);
  };

  const auto part = [&](T* w, T* d, std::int64_t length, std::uint64_t first_element) {
    auto weight = vec(w, length);
    auto gradient = vec(d, length);
    if (options.dropout.active()) {
      dropout_multipliers(call.random, options.dropout, first_element, length, multipliers);
      const auto kept = vec(static_cast<const T*>(multipliers), length);
      gradient = weight * (kept * gradient - total);
      weight *= kept;
    } else {
      gradient = weight * (gradient - total);
    }
  };
  if (dspan != nullptr && head.corner_begin < head.corner_end) {
    // Before the scores are overwritten: dmask = exp(score - lse) (g - D), for the few slots on the ramp.
    std::int64_t begin = head.corner_begin;
    if (call.data.in.past_valid)
      begin = std::max(
          begin, first_valid_place(head, m, call.data.in.past_valid.template data<const std::int32_t>()[tile.stream]));
    const std::int64_t corners = head.corner_end - begin;
    if (options.dropout.active() && corners > 0)
      dropout_multipliers(call.random, options.dropout, slot_of_place(begin), corners, multipliers);
    for (std::int64_t place = begin; place < head.corner_end; ++place) {
      const T multiplier = options.dropout.active() ? multipliers[place - begin] : T(1);
      const double exponent = std::min(kLargestBoundaryExponent, static_cast<double>(weights[i + place] - lse));
      *dspan += std::exp(exponent) * static_cast<double>(multiplier * dscores[i + place] - total);
    }
  }
  if (tile.columns > 0) {
    auto context = vec(weights + i + low, count);
    context = (context - lse).exp();
    for (std::int64_t place = low; place < head.full; ++place)
      weights[i + place] *= static_cast<T>(head.mask[static_cast<std::size_t>(place - head.visible)]);
    part(weights + i + low, dscores + i + low, count, slot_of_place(low));
    for (T* row : {weights, dscores}) {
      std::fill_n(row, i + low, T(0));
      std::fill(row + i + head.slots, row + tile.columns, T(0));
    }
  }
  if (tile.persistent > 0) {
    auto slots = vec(weights + tile.columns, tile.persistent);
    slots = (slots - lse).exp();
    part(weights + tile.columns, dscores + tile.columns, tile.persistent,
         element + static_cast<std::uint64_t>(s.dropout_reach));
  }
}

template <class T>
void backward_tile(const BackwardCall<T>& call, const AttentionTile<T>& tile, T* memory, const Partial<T>& partial) {
  const AttentionSizes& s = call.data.plan.sizes;
  const AttentionInputs& in = call.data.in;
  const AttentionOptions& options = call.data.options;
  const AttentionGradients& gradients = call.gradients;
  const Scratch<T> scratch(memory, tile);
  const std::int64_t ld = tile.row_length, slots = tile.head_plan.slots;
  const auto score_scale = static_cast<T>(options.score_scale);
  const auto slot_score_scale = static_cast<T>(options.slot_score_scale);
  const auto value_scale = static_cast<T>(options.slot_value_scale);
  const T* dout = tile.query_row(call.dout, tile.first);
  const T* query = tile.query_row(call.data.content_query, tile.first);
  const auto keys = [&](const ColumnRun& run) {
    return tile.run_rows(run, tile.past(in.past_keys), in.keys.template data<const T>());
  };
  const auto values = [&](const ColumnRun& run) {
    return tile.run_rows(run, tile.past(in.past_values), in.values.template data<const T>());
  };

  tile.compute_scores(scratch.weights, scratch.positions);
  const auto dweights = [&](RowsAt<const T> rows, std::int64_t count, T factor, T* to) {
    gemm(Gemm<T>{.transpose_b = Transpose::yes,
                 .m = tile.queries,
                 .n = count,
                 .k = s.depth,
                 .factor = factor,
                 .a = dout,
                 .a_stride = s.width,
                 .b = rows.data,
                 .b_stride = rows.stride,
                 .c = to,
                 .c_stride = ld});
  };
  for (const ColumnRun& run : tile.runs) dweights(values(run), run.length, T(1), scratch.dscores + run.column);
  if (tile.persistent > 0)
    dweights({tile.slots_of(in.slot_values.template data<const T>()), s.depth}, tile.persistent, value_scale,
             scratch.dscores + tile.columns);
  for (std::int64_t i = 0; i < tile.queries; ++i)
    backward_row(call, tile, i, scratch.weights + i * ld, scratch.dscores + i * ld, scratch.multipliers, partial.span);

  // Gradients of keys and values: [columns, D] (add) matrix^T rows.
  const auto into_rows = [&](const T* matrix, std::int64_t matrix_stride, std::int64_t count, const T* rows, T factor,
                             RowsAt<T> to) {
    gemm(Gemm<T>{.transpose_a = Transpose::yes,
                 .m = count,
                 .n = s.depth,
                 .k = tile.queries,
                 .factor = factor,
                 .a = matrix,
                 .a_stride = matrix_stride,
                 .b = rows,
                 .b_stride = s.width,
                 .write = Write::add,
                 .c = to.data,
                 .c_stride = to.stride});
  };
  T* const past_keys = call.of(gradients.past_keys);
  T* const past_values = call.of(gradients.past_values);
  T* const block_keys = call.of(gradients.keys);
  T* const block_values = call.of(gradients.values);
  for (const ColumnRun& run : tile.runs) {
    if (run.past ? past_values != nullptr : block_values != nullptr)
      into_rows(scratch.weights + run.column, ld, run.length, dout, T(1),
                tile.run_rows(run, past_values, block_values));
    if (run.past ? past_keys != nullptr : block_keys != nullptr)
      into_rows(scratch.dscores + run.column, ld, run.length, query, score_scale,
                tile.run_rows(run, past_keys, block_keys));
  }
  if (partial.slot_values != nullptr)
    into_rows(scratch.weights + tile.columns, ld, tile.persistent, dout, value_scale, {partial.slot_values, s.depth});
  if (partial.slot_keys != nullptr)
    into_rows(scratch.dscores + tile.columns, ld, tile.persistent, query, slot_score_scale,
              {partial.slot_keys, s.depth});

  // Gradients of the queries: [queries, D] (set or add) dscores times rows.
  const auto into_query = [&](T* to, Write& write, const T* matrix, std::int64_t stride, std::int64_t count,
                              RowsAt<const T> rows, T factor) {
    gemm(Gemm<T>{.m = tile.queries,
                 .n = s.depth,
                 .k = count,
                 .factor = factor,
                 .a = matrix,
                 .a_stride = stride,
                 .b = rows.data,
                 .b_stride = rows.stride,
                 .write = write,
                 .c = to,
                 .c_stride = s.width});
    write = Write::add;
  };
  Write content_write = gradients.content_query.write, position_write = gradients.position_query.write;
  T* dcontent = call.of(gradients.content_query);
  if (dcontent != nullptr) {
    dcontent = tile.query_row(dcontent, tile.first);
    for (const ColumnRun& run : tile.runs)
      into_query(dcontent, content_write, scratch.dscores + run.column, ld, run.length, keys(run), score_scale);
    if (tile.persistent > 0)
      into_query(dcontent, content_write, scratch.dscores + tile.columns, ld, tile.persistent,
                 {tile.slots_of(in.slot_keys.template data<const T>()), s.depth}, slot_score_scale);
  }
  if (tile.columns == 0 || call.data.reversed_positions == nullptr) return;
  // The band of every row side by side, so that places and not columns line up.
  for (std::int64_t i = 0; i < tile.queries; ++i)
    std::copy_n(scratch.dscores + i * ld + i, slots, scratch.positions + i * slots);
  const T* position_query = tile.query_row(call.data.position_query, tile.first);
  if (in.position_query) {
    if (T* dposition = call.of(gradients.position_query))
      into_query(tile.query_row(dposition, tile.first), position_write, scratch.positions, slots, slots,
                 tile.position_rows(), score_scale);
  } else if (dcontent != nullptr) {
    into_query(dcontent, content_write, scratch.positions, slots, slots, tile.position_rows(), score_scale);
  }
  if (partial.positions != nullptr)
    into_rows(scratch.positions, slots, slots, position_query, score_scale, {partial.positions, s.depth});
}

// Where the partial sums of all (group, head) pairs lie in one workspace.
template <class T>
class Partials {
 public:
  Partials(Step& step, const AttentionData<T>& data, const AttentionGradients& gradients, std::int64_t groups)
      : sizes_(data.plan.sizes), heads_(data.plan.heads), groups_(groups), want_(gradients) {
    for (const HeadPlan& head : heads_) {
      position_first_.push_back(position_total_);
      position_total_ += head.slots * sizes_.depth;
    }
    want_positions_ = want_.position_keys && data.reversed_positions != nullptr;
    slot_size_ = sizes_.persistent * sizes_.depth;
    group_size_ = (want_positions_ ? position_total_ : 0) + (want_.slot_keys ? sizes_.heads * slot_size_ : 0) +
                  (want_.slot_values ? sizes_.heads * slot_size_ : 0);
    memory_.emplace(step.memory(), sizeof(T) * static_cast<std::size_t>(groups * group_size_));
    spans_.emplace(step.memory(), sizeof(double) * static_cast<std::size_t>(groups * sizes_.heads));
  }

  Partial<T> of(std::int64_t group, std::int64_t head) const {
    T* at = memory_->template data<T>() + group * group_size_;
    Partial<T> partial;
    if (want_positions_) {
      partial.positions = at + position_first_[static_cast<std::size_t>(head)];
      at += position_total_;
    }
    if (want_.slot_keys) {
      partial.slot_keys = at + head * slot_size_;
      at += sizes_.heads * slot_size_;
    }
    if (want_.slot_values) partial.slot_values = at + head * slot_size_;
    if (want_.span) partial.span = spans_->template data<double>() + group * sizes_.heads + head;
    return partial;
  }
  void clear(const Partial<T>& partial, std::int64_t head) const {
    if (partial.positions != nullptr)
      std::fill_n(partial.positions, heads_[static_cast<std::size_t>(head)].slots * sizes_.depth, T(0));
    if (partial.slot_keys != nullptr) std::fill_n(partial.slot_keys, slot_size_, T(0));
    if (partial.slot_values != nullptr) std::fill_n(partial.slot_values, slot_size_, T(0));
    if (partial.span != nullptr) *partial.span = 0;
  }

  /// Adds everything up in the order of groups (and heads, for a shared position table) and writes the results.
  void finish(const AttentionOptions& options) const {
    if (want_.slot_keys) add_slots(want_.slot_keys, &Partial<T>::slot_keys);
    if (want_.slot_values) add_slots(want_.slot_values, &Partial<T>::slot_values);
    if (want_.span) {
      T* span = want_.span.tensor.template data<T>();
      for (std::int64_t head = 0; head < sizes_.heads; ++head) {
        double sum = 0;
        for (std::int64_t group = 0; group < groups_; ++group) sum += *of(group, head).span;
        const auto gradient = static_cast<T>(options.ramp > 0 ? sum * options.max_distance / options.ramp : 0.0);
        span[head] = want_.span.write == Write::add ? span[head] + gradient : gradient;
      }
    }
    if (want_.position_keys) add_positions(options);
  }

 private:
  void add_slots(const AttentionGradients::Target& target, T* Partial<T>::*member) const {
    parallel_items(sizes_.heads, [&](std::int64_t head) {
      auto to = vec(target.tensor.template data<T>() + head * slot_size_, slot_size_);
      store(to, vec(of(0, head).*member, slot_size_), target.write);
      for (std::int64_t group = 1; group < groups_; ++group) to += vec(of(group, head).*member, slot_size_);
    });
  }
  void add_positions(const AttentionOptions& options) const {
    const std::int64_t rows = want_.position_keys.tensor.shape()[0];
    const std::int64_t length = want_.position_keys.tensor.shape()[1], depth = sizes_.depth;
    const bool shared = length == depth;
    parallel_chunks(rows, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* to = want_.position_keys.tensor.template data<T>() + row * length;
        if (want_.position_keys.write == Write::set) std::fill_n(to, length, T(0));
        if (!want_positions_) continue;
        for (std::int64_t head = 0; head < sizes_.heads; ++head) {
          const std::int64_t place = heads_[static_cast<std::size_t>(head)].window - row - options.min_distance;
          if (place < 0 || place >= heads_[static_cast<std::size_t>(head)].slots) continue;
          auto sum = vec(to + (shared ? 0 : head * depth), depth);
          for (std::int64_t group = 0; group < groups_; ++group)
            sum += vec(of(group, head).positions + place * depth, depth);
        }
      }
    });
  }

  const AttentionSizes& sizes_;
  const std::vector<HeadPlan>& heads_;
  std::int64_t groups_;
  const AttentionGradients& want_;
  bool want_positions_ = false;
  std::vector<std::int64_t> position_first_;
  std::int64_t position_total_ = 0, slot_size_ = 0, group_size_ = 0;
  std::optional<Workspace> memory_, spans_;
};

template <class T>
void zero_if_set(const AttentionGradients::Target& target) {
  if (!target || target.write == Write::add) return;
  T* data = target.tensor.template data<T>();
  parallel_chunks(target.tensor.count(), kElementChunk,
                  [&](std::int64_t begin, std::int64_t end) { std::fill(data + begin, data + end, T(0)); });
}

// Streams are dealt into groups, each with its own partial sums: enough work items for many threads, few enough sums.
constexpr std::int64_t kMostGroups = 4;

void attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                        const Tensor& out, const Tensor& lse, const Tensor& dout, AttentionGradients& gradients) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const AttentionPlan plan(in, options);
    const AttentionSizes& s = plan.sizes;
    const bool positions =
        in.position_keys && options.windows.longest + 1 > options.min_distance && options.max_distance > 0;
    const std::int64_t table =
        positions ? (options.windows.longest + 1 - options.min_distance) * in.position_keys.shape()[1] : 0;
    const std::int64_t per_thread = ((plan.scratch_tile + 1) * 3 * plan.scratch_columns + 63) / 64 * 64;
    const Workspace workspace =
        step.workspace(sizeof(T) * static_cast<std::size_t>((table + 63) / 64 * 64 + per_thread * max_threads()));
    T* reversed = workspace.data<T>();
    if (positions) reverse_position_keys(in, options, reversed);
    const AttentionData<T> data(in, options, plan, positions ? reversed : nullptr);
    const BackwardCall<T> call{data, random, out.data<const T>(), lse.data<const T>(), dout.data<const T>(), gradients};
    // Rows of keys and values get sums from several tiles; queries of heads without any context from none.
    for (auto* target : {&gradients.past_keys, &gradients.past_values, &gradients.keys, &gradients.values})
      zero_if_set<T>(*target);
    const bool some_blind = std::ranges::any_of(plan.heads, [](const HeadPlan& head) { return head.slots == 0; });
    if (some_blind && s.persistent == 0) zero_if_set<T>(gradients.content_query);
    if (some_blind || !positions) zero_if_set<T>(gradients.position_query);

    const std::int64_t groups = std::min(s.streams, kMostGroups);
    const Partials<T> partials(step, data, gradients, groups);
    T* scratch = reversed + (table + 63) / 64 * 64;
    parallel_items_on_threads(s.heads * groups, [&](std::int64_t item, int thread) {
      const std::int64_t head = plan.longest_first[static_cast<std::size_t>(item / groups)], group = item % groups;
      const Partial<T> partial = partials.of(group, head);
      partials.clear(partial, head);
      for (std::int64_t stream = group; stream < s.streams; stream += groups)
        for (std::int64_t query = 0; query < s.block; query += plan.heads[static_cast<std::size_t>(head)].tile)
          backward_tile(call, AttentionTile<T>(data, stream, head, query), scratch + thread * per_thread, partial);
    });
    partials.finish(options);
  });
}

const bool bound = kernels::attention_backward.bind(DeviceKind::cpu, &attention_backward);

}  // namespace
}  // namespace engram::cpu
