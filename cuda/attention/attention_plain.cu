#include "cuda/attention/attention_plain.hpp"

#include <algorithm>

#include "core/kernels/fill.hpp"
#include "cuda/attention/attention_rows.cuh"
#include "cuda/attention/span_gradient.cuh"
#include "cuda/blas.hpp"
#include "cuda/elements.cuh"

namespace engram::cuda {
namespace {

/// nullptr for a tensor that is not there.
template <class T>
const T* data_of(const Tensor& tensor) {
  return tensor ? tensor.data<const T>() : nullptr;
}
template <class T>
T* offset(T* data, std::int64_t elements) {
  return data == nullptr ? nullptr : data + elements;
}

/// Memory for the matrices of one head: of the widest, used by one head after the other.
template <class T>
class Matrices {
 public:
  Matrices(Step& step, const AttentionInputs& in, const AttentionOptions& options)
      : rows_(in.content_query.shape()[0] * in.content_query.shape()[1]),
        block_(in.content_query.shape()[1]),
        longest_(options.max_distance == 0 ? 0 : options.windows.longest),
        persistent_(in.slot_keys ? in.slot_keys.shape()[1] : 0),
        memory_(step.memory(),
                sizeof(T) * static_cast<std::size_t>(rows_ * (2 * longest_ + 1 + block_ + persistent_))) {}
  HeadMatrices<T> get() const {
    T* const past = memory_.template data<T>();
    T* const here = past + rows_ * longest_;
    T* const persistent = here + rows_ * block_;
    return {past, here, persistent, persistent + rows_ * persistent_};
  }

 private:
  std::int64_t rows_, block_, longest_, persistent_;
  Workspace memory_;
};

/// One head's part of a call: where its operands lie, and the products with them.
template <class T>
struct Head {
  Step& step;
  const AttentionInputs& in;
  const AttentionOptions& options;
  std::int64_t streams;
  HeadRows<T> rows;
  std::int64_t first_past;  // of the head in the packed past, elements

  Head(Step& of_step, const AttentionInputs& inputs, const AttentionOptions& opts, RandomStream random,
       std::int64_t head)
      : step(of_step), in(inputs), options(opts), streams(inputs.content_query.shape()[0]), rows{}, first_past(0) {
    rows.block = in.content_query.shape()[1];
    rows.columns = in.keys ? rows.block : 0;
    rows.heads = options.heads;
    rows.head = head;
    rows.width = in.content_query.shape()[2];
    rows.depth = rows.width / options.heads;
    rows.persistent = in.slot_keys ? in.slot_keys.shape()[1] : 0;
    rows.past_count = options.past_count;
    rows.min_distance = options.min_distance;
    rows.max_distance = options.max_distance;
    rows.mask_offset = options.mask_offset;
    rows.ramp = in.span ? options.ramp : 0;
    rows.ramp_gradient = options.ramp_gradient;
    rows.drops = options.dropout.active();
    rows.dropout = options.dropout;
    rows.random = random;
    rows.dropout_reach = (options.max_distance + 1 - options.min_distance + 7) / 8 * 8;
    rows.dropout_stride = (rows.dropout_reach + rows.persistent + 7) / 8 * 8;
    rows.span = in.span ? in.span.data<const T>() + head : nullptr;
    rows.span_stride = has_query_spans(in) ? rows.heads : 0;
    rows.past_valid = in.past_valid ? in.past_valid.data<const std::int32_t>() : nullptr;
    if (options.max_distance > 0) {
      rows.window = options.windows.window[static_cast<std::size_t>(head)];
      rows.slots = std::max<std::int64_t>(0, rows.window + 1 - options.min_distance);
      first_past = streams * options.windows.first[static_cast<std::size_t>(head)] * rows.depth;
    }
    rows.position_keys = in.position_keys && rows.slots > 0;
    rows.position_values = in.position_values && rows.slots > 0;
  }

  std::int64_t row_count() const { return streams * rows.block; }

  /// Operands with one matrix per stream.
  Operand<T> queries(const T* tensor) const {  // of [B, M, H D]
    return {offset(tensor, rows.head * rows.depth), rows.width, rows.block * rows.width};
  }
  Operand<T> past(const T* tensor) const { return {offset(tensor, first_past), rows.depth, rows.window * rows.depth}; }
  /// Operands that the streams share.
  Operand<T> persistent(const T* tensor) const {
    return {offset(tensor, rows.head * rows.persistent * rows.depth), rows.depth, 0};
  }
  /// Of a position table, or of its gradient: the head's first column.
  std::int64_t position_column(const Tensor& table) const {
    return table.shape()[1] == rows.depth ? 0 : rows.head * rows.depth;
  }
  Operand<T> positions(const Tensor& table) const {
    return {table.data<const T>() + position_column(table), table.shape()[1], 0};
  }
  static Operand<T> transposed(Operand<T> operand) {
    operand.transposed = true;
    return operand;
  }
  Operand<T> matrix(const T* data, std::int64_t columns) const { return {data, columns, rows.block * columns}; }

  /// matrix[b] (set) = factor rows_of[b] side[b]^T, `columns` rows of side.
  void against(const Operand<T>& rows_of, const Operand<T>& side, std::int64_t columns, double factor, T* to) const {
    if (columns == 0) return;
    multiply(step, Product<T>{.m = rows.block,
                              .n = columns,
                              .k = rows.depth,
                              .batch = streams,
                              .factor = factor,
                              .a = rows_of,
                              .b = transposed(side),
                              .c = to,
                              .row_stride = columns,
                              .batch_stride = rows.block * columns});
  }
  /// to[b] (set, then add), the head's columns of a [B, M, H D] tensor = factor data[b] side[b].
  void weighted(const T* data, std::int64_t columns, const Operand<T>& side, double factor, T* to, Write& write) const {
    if (columns == 0 || to == nullptr) return;
    multiply(step, Product<T>{.m = rows.block,
                              .n = rows.depth,
                              .k = columns,
                              .batch = streams,
                              .factor = factor,
                              .a = matrix(data, columns),
                              .b = side,
                              .write = write,
                              .c = to + rows.head * rows.depth,
                              .row_stride = rows.width,
                              .batch_stride = rows.block * rows.width});
    write = Write::add;
  }
  /// to[b] (set or add), `columns` rows = factor data[b]^T rows_of[b]; a batch stride of 0 sums over the streams.
  void gathered(const T* data, std::int64_t columns, const Operand<T>& rows_of, double factor, T* to,
                std::int64_t row_stride, std::int64_t batch_stride, Write write) const {
    if (columns == 0 || to == nullptr) return;
    multiply(step, Product<T>{.m = columns,
                              .n = rows.depth,
                              .k = rows.block,
                              .batch = streams,
                              .factor = factor,
                              .a = transposed(matrix(data, columns)),
                              .b = rows_of,
                              .write = write,
                              .c = to,
                              .row_stride = row_stride,
                              .batch_stride = batch_stride});
  }

  const T* content_query() const { return in.content_query.data<const T>(); }
  const T* position_query() const {
    return in.position_query ? in.position_query.data<const T>() : in.content_query.data<const T>();
  }
  void compute_scores(const HeadMatrices<T>& to) const {
    const Operand<T> query = queries(content_query());
    against(query, past(data_of<T>(in.past_keys)), rows.window, options.score_scale, to.past);
    against(query, queries(data_of<T>(in.keys)), rows.columns, options.score_scale, to.here);
    against(query, persistent(data_of<T>(in.slot_keys)), rows.persistent, options.slot_score_scale, to.persistent);
    if (rows.position_keys)
      against(queries(position_query()), positions(in.position_keys), rows.slots, options.score_scale, to.position);
  }
  /// Gradients of the weights, without dropout.
  void compute_weight_gradients(const T* dout, const HeadMatrices<T>& to) const {
    const Operand<T> of_out = queries(dout);
    against(of_out, past(data_of<T>(in.past_values)), rows.window, 1, to.past);
    against(of_out, queries(data_of<T>(in.values)), rows.columns, 1, to.here);
    against(of_out, persistent(data_of<T>(in.slot_values)), rows.persistent, options.slot_value_scale, to.persistent);
    if (rows.position_values) against(of_out, positions(in.position_values), rows.slots, 1, to.position);
  }
  /// Adds to a position table's gradient: data^T rows_of, summed over the streams.
  void into_positions(const T* data, const Operand<T>& rows_of, double factor, const Target& to) const {
    if (!to) return;
    gathered(data, rows.slots, rows_of, factor, to.data<T>() + position_column(to.tensor), to.tensor.shape()[1], 0,
             Write::add);
  }
};

/// Calls body.operator()<kThreads>() for the kernels over rows of this head.
template <class T, class Body>
void with_row_threads(const HeadRows<T>& rows, Body&& body) {
  if (rows.window + rows.columns + rows.persistent <= kLongestShortRow)
    body.template operator()<kShortRowThreads>();
  else
    body.template operator()<kLongRowThreads>();
}

bool nothing_to_see(const AttentionInputs& in) { return !in.keys && (!in.slot_keys || in.slot_keys.shape()[1] == 0); }

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

void plain_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                             RandomStream random, Tensor& out, Tensor& lse, Tensor& kept) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const Matrices<T> memory(step, in, options);
    const HeadMatrices<T> scores = memory.get();
    if (nothing_to_see(in)) kernels::fill(step, out, 0);
    T* kept_rows = kept ? kept.data<T>() : nullptr;
    for (int number = 0; number < options.heads; ++number) {
      const Head<T> head(step, in, options, random, number);
      head.compute_scores(scores);
      with_row_threads(head.rows, [&]<int kThreads>() {
        launch(step, {.blocks = head.row_count(), .threads = kThreads}, weigh_rows<kThreads, T>, head.rows, scores,
               lse.data<T>(), kept_rows);
      });
      if (kept_rows != nullptr) kept_rows += head.row_count() * (head.rows.persistent + head.rows.slots);
      Write write = Write::set;
      T* const to = out.data<T>();
      head.weighted(scores.past, head.rows.window, head.past(data_of<T>(in.past_values)), 1, to, write);
      head.weighted(scores.here, head.rows.columns, head.queries(data_of<T>(in.values)), 1, to, write);
      head.weighted(scores.persistent, head.rows.persistent, head.persistent(data_of<T>(in.slot_values)),
                    options.slot_value_scale, to, write);
      if (head.rows.position_values)
        head.weighted(scores.position, head.rows.slots, head.positions(in.position_values), 1, to, write);
    }
  });
}

}  // namespace ENGRAM_CUDA_DEVICE

namespace {

/// The products of one head's gradients, from weights times dropout and gradients of scores.
template <class T>
void multiply_gradients(const Head<T>& head, const HeadMatrices<T>& weights, const HeadMatrices<T>& dscores,
                        const T* dout, const AttentionGradients& gradients) {
  const AttentionInputs& in = head.in;
  const HeadRows<T>& rows = head.rows;
  const double scale = head.options.score_scale, slot_scale = head.options.slot_score_scale;
  const Operand<T> query = head.queries(head.content_query()), of_out = head.queries(dout);

  Write write = gradients.content_query.write;
  T* const dquery = gradients.content_query.data<T>();
  head.weighted(dscores.past, rows.window, head.past(data_of<T>(in.past_keys)), scale, dquery, write);
  head.weighted(dscores.here, head.rows.columns, head.queries(data_of<T>(in.keys)), scale, dquery, write);
  head.weighted(dscores.persistent, rows.persistent, head.persistent(data_of<T>(in.slot_keys)), slot_scale, dquery,
                write);
  if (rows.position_keys) {
    const Operand<T> keys = head.positions(in.position_keys);
    Write position_write = gradients.position_query.write;
    if (in.position_query)
      head.weighted(dscores.position, rows.slots, keys, scale, gradients.position_query.data<T>(), position_write);
    else
      head.weighted(dscores.position, rows.slots, keys, scale, dquery, write);
    head.into_positions(dscores.position, head.queries(head.position_query()), scale, gradients.position_keys);
  }
  if (rows.position_values) head.into_positions(weights.position, of_out, 1, gradients.position_values);

  // Rows of one stream, of all streams, and columns of a [B, M, H D] tensor.
  const auto into_past = [&](const T* matrix, const Operand<T>& from, double factor, const Target& to) {
    if (T* const data = to.data<T>(); data != nullptr)
      head.gathered(matrix, rows.window, from, factor, data + head.first_past, rows.depth, rows.window * rows.depth,
                    to.write);
  };
  const auto into_block = [&](const T* matrix, const Operand<T>& from, double factor, const Target& to) {
    if (T* const data = to.data<T>(); data != nullptr)
      head.gathered(matrix, head.rows.columns, from, factor, data + rows.head * rows.depth, rows.width,
                    rows.block * rows.width, to.write);
  };
  const auto into_slots = [&](const T* matrix, const Operand<T>& from, double factor, const Target& to) {
    if (T* const data = to.data<T>(); data != nullptr)
      head.gathered(matrix, rows.persistent, from, factor, data + rows.head * rows.persistent * rows.depth, rows.depth,
                    0, to.write);
  };
  into_past(dscores.past, query, scale, gradients.past_keys);
  into_past(weights.past, of_out, 1, gradients.past_values);
  into_block(dscores.here, query, scale, gradients.keys);
  into_block(weights.here, of_out, 1, gradients.values);
  into_slots(dscores.persistent, query, slot_scale, gradients.slot_keys);
  into_slots(weights.persistent, of_out, head.options.slot_value_scale, gradients.slot_values);
}

/// From the shares of the head's rows: their sum, or each where every query has its span.
template <class T>
void store_span_gradient(const Head<T>& head, const double* shares, const Target& to) {
  const AttentionOptions& options = head.options;
  const double factor = options.ramp > 0 ? static_cast<double>(options.max_distance) / options.ramp : 0.0;
  T* const dspan = to.data<T>() + head.rows.head;
  if (has_query_spans(head.in))
    launch_elements<1>(head.step, head.row_count(),
                       StoreQuerySpanGradients<T>{factor, shares, dspan, head.rows.heads, to.write});
  else
    ordered_sum(head.step, head.row_count(), PartialSum{shares}, StoreSpanGradient<T>{factor, dspan, to.write});
}

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

void plain_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                              const AttentionGradients& wanted) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const Matrices<T> score_memory(step, in, options), gradient_memory(step, in, options);
    const HeadMatrices<T> scores = score_memory.get(), dscores = gradient_memory.get();
    const std::int64_t rows = in.content_query.shape()[0] * in.content_query.shape()[1];
    const Workspace span_shares = step.workspace(sizeof(double) * static_cast<std::size_t>(rows));
    AttentionGradients gradients = wanted;
    const auto clear = [&](Target& target) {
      kernels::clear_if_set(step, target);
      target.write = Write::add;
    };
    // Heads without a band give them nothing; the table's rows are sums over heads.
    if (nothing_to_see(in)) clear(gradients.content_query);
    for (Target* target : {&gradients.position_query, &gradients.position_keys, &gradients.position_values})
      clear(*target);
    for (int number = 0; number < options.heads; ++number) {
      const Head<T> head(step, in, options, random, number);
      head.compute_scores(scores);
      head.compute_weight_gradients(dout.data<const T>(), dscores);
      with_row_threads(head.rows, [&]<int kThreads>() {
        launch(step, {.blocks = rows, .threads = kThreads}, score_gradients<kThreads, T>, head.rows, scores, dscores,
               out.data<const T>(), dout.data<const T>(), lse.data<const T>(), span_shares.data<double>());
      });
      multiply_gradients(head, scores, dscores, dout.data<const T>(), gradients);
      if (gradients.span) store_span_gradient(head, span_shares.data<const double>(), gradients.span);
    }
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
