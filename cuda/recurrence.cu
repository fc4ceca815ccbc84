#include "core/kernels/recurrence.hpp"

#include "cuda/blas.hpp"
#include "cuda/elements.cuh"

namespace engram::cuda::recurrence_kernels {
namespace {

/// What a thread needs to find its way; copied to the device as bytes. Streams B, steps M, units k, order N, matrices
/// G.
template <class T>
struct Layer {
  const T* start_hidden;
  const T* start_cells;
  const std::int32_t* preceding;
  std::int64_t streams, steps, units, order, matrices, inputs, hidden_rows, cell_rows;
  RecurrentCell cell;
  T decay;

  Layer(const RecurrenceInputs& in, const Tensor& outputs)
      : start_hidden(in.hidden.data<const T>()),
        start_cells(in.options.cell == RecurrentCell::lstm ? in.cells.data<const T>() : nullptr),
        preceding(in.preceding.data<const std::int32_t>()),
        streams(outputs.shape()[0]),
        steps(outputs.shape()[1]),
        units(outputs.shape()[2]),
        order(in.options.history()),
        matrices(in.options.weight_blocks()),
        inputs(in.options.input_blocks()),
        hidden_rows(in.hidden.shape()[1]),
        cell_rows(in.cells.shape()[1]),
        cell(in.options.cell),
        decay(static_cast<T>(in.options.decay)) {}

  std::int64_t product_width() const { return matrices * units; }
  std::int64_t product_rows() const { return order + steps - 1; }
  ENGRAM_HD bool is_higher_order() const {
    return cell == RecurrentCell::hornn_fofe || cell == RecurrentCell::hornn_gated;
  }

  __device__ std::int64_t place(std::int64_t stream, std::int64_t t) const { return (stream * steps + t) * units; }
  __device__ bool in_sequence(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return preceding[stream * steps + t] >= delay;
  }
  /// Whether h_{t-delay} exists.
  __device__ bool hidden(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return in_sequence(stream, t, delay) && t - delay >= -hidden_rows;
  }
  /// Whether c_{t-1} exists, and where it is.
  __device__ const T* cell_before(const T* cells, std::int64_t stream, std::int64_t t) const {
    if (!in_sequence(stream, t, 1)) return nullptr;
    if (t > 0) return cells + place(stream, t - 1);
    return cell_rows > 0 ? start_cells + ((stream + 1) * cell_rows - 1) * units : nullptr;
  }
  /// Matrix `matrix` times h_s of a stream, of the higher-order cells.
  __device__ std::int64_t product(std::int64_t stream, std::int64_t s, std::int64_t matrix) const {
    return (((s + order) * streams + stream) * matrices + matrix) * units;
  }
};

/// One unit of one stream at step t. products: of the lstm and the plain cell those of this step, [B, G k].
template <class T>
struct StepForward {
  Layer<T> layer;
  std::int64_t t;
  T* gates;
  const T* products;
  T* outputs;
  T* cells;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t stream = i / layer.units, unit = i % layer.units, place = layer.place(stream, t) + unit;
    T* const gate = gates + layer.place(stream, t) * layer.inputs + unit;
    if (layer.is_higher_order()) {
      outputs[place] = higher_order(stream, unit, gate);
      return;
    }
    const bool met = layer.hidden(stream, t, 1);
    const T* const product = products + stream * layer.matrices * layer.units + unit;
    if (layer.cell == RecurrentCell::rnn) {
      outputs[place] = NumberMath::tanh(met ? gate[0] + product[0] : gate[0]);
      return;
    }
    T g[4];
    for (int j = 0; j < 4; ++j) {
      g[j] = gate[j * layer.units];
      if (met) g[j] += product[j * layer.units];
    }
    const T* const before = layer.cell_before(cells, stream, t);
    T cell = before == nullptr ? T(0) : before[unit];
    outputs[place] = lstm_forward<NumberMath>(g[0], g[1], g[2], g[3], cell);
    for (int j = 0; j < 4; ++j) gate[j * layer.units] = g[j];
    cells[place] = cell;
  }
  __device__ T higher_order(std::int64_t stream, std::int64_t unit, T* gate) const {
    T x = gate[0], weight = 1;
    for (std::int64_t m = 1; m <= layer.order; ++m) {
      weight *= layer.decay;
      const bool met = layer.hidden(stream, t, m);
      const T passed = met ? products[layer.product(stream, t - m, m - 1) + unit] : T(0);
      if (layer.cell == RecurrentCell::hornn_fofe) {
        x += weight * passed;
        continue;
      }
      T* const place = gate + m * layer.units;
      const T before = met ? products[layer.product(stream, t - m, layer.order + m - 1) + unit] : T(0);
      const T q = NumberMath::sigmoid(*place + before);
      *place = q;
      x += q * passed;
    }
    return NumberMath::tanh(x);
  }
};

template <class T>
struct StepBackward {
  Layer<T> layer;
  std::int64_t t;
  const T* outputs;
  const T* cells;
  const T* doutputs;
  const T* returned;  ///< [B, k]: what reached h_t through products; nothing at the last step
  T* carried;         ///< [B, k]: what reaches c_{t-1}
  T* gates;
  T* products;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t stream = i / layer.units, unit = i % layer.units, place = layer.place(stream, t) + unit;
    const bool last = t + 1 == layer.steps;
    T dh = doutputs[place];
    if (!last && (layer.is_higher_order() || layer.in_sequence(stream, t + 1, 1))) dh += returned[i];
    T* const gate = gates + layer.place(stream, t) * layer.inputs + unit;
    if (layer.cell == RecurrentCell::lstm) {
      const T* const before = layer.cell_before(cells, stream, t);
      T g[4], dcell = last ? T(0) : carried[i];
      for (int j = 0; j < 4; ++j) g[j] = gate[j * layer.units];
      lstm_backward<NumberMath>(g[0], g[1], g[2], g[3], cells[place], before == nullptr ? T(0) : before[unit], dh,
                                dcell);
      for (int j = 0; j < 4; ++j) gate[j * layer.units] = g[j];
      carried[i] = before == nullptr ? T(0) : dcell;
      return;
    }
    const T da = through_tanh(dh, outputs[place]);
    gate[0] = da;
    if (layer.is_higher_order()) higher_order(stream, unit, gate, da);
  }
  __device__ void higher_order(std::int64_t stream, std::int64_t unit, T* gate, T da) const {
    T weight = 1;
    for (std::int64_t m = 1; m <= layer.order; ++m) {
      weight *= layer.decay;
      const bool met = layer.hidden(stream, t, m);
      T* const passed = products + layer.product(stream, t - m, m - 1) + unit;
      if (layer.cell == RecurrentCell::hornn_fofe) {
        *passed = met ? weight * da : T(0);
        continue;
      }
      const T q = gate[m * layer.units], dq = met ? through_sigmoid(da * *passed, q) : T(0);
      gate[m * layer.units] = dq;
      products[layer.product(stream, t - m, layer.order + m - 1) + unit] = dq;
      *passed = met ? da * q : T(0);
    }
  }
};

/// Zeros: in the forward pass products of states that do not exist; in the backward one gradients of those that no step
/// of the chunk reads.
template <class T>
struct ClearProducts {
  Layer<T> layer;
  bool unread;
  T* products;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t width = layer.matrices * layer.units;
    const std::int64_t s = i / width / layer.streams - layer.order, m = i % width / layer.units % layer.order + 1;
    if (unread ? s + m < 0 || s + m >= layer.steps : s < -layer.hidden_rows) products[i] = 0;
  }
};

/// All matrices times the rows of one step: [B, k] x [k, G k].
template <class T>
void multiply_states(Step& step, const RecurrenceInputs& in, const Layer<T>& layer, const T* rows, std::int64_t stride,
                     T* products) {
  multiply(step, Product<T>{.m = layer.streams,
                            .n = layer.product_width(),
                            .k = layer.units,
                            .a = {rows, stride, 0, false},
                            .b = {in.weight.data<const T>(), layer.units, 0, true},
                            .c = products,
                            .row_stride = layer.product_width()});
}

void recurrence_forward(Step& step, const RecurrenceInputs& in, Tensor& gates, Tensor& products, Tensor& outputs,
                        Tensor& cells) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    const Layer<T> layer(in, outputs);
    const std::int64_t row = layer.streams * layer.product_width();
    const bool kept = layer.is_higher_order();
    const Workspace memory = step.workspace(static_cast<std::size_t>(kept ? 0 : row) * sizeof(T));
    T* const all = kept ? products.data<T>() : memory.data<T>();
    T* const hidden = outputs.data<T>();
    // Products of h_s for s = -order, ..., M - 2; all but the higher-order cells have forgotten the one before the
    // last.
    const auto multiply_state = [&](std::int64_t s) {
      T* const to = kept ? all + (s + layer.order) * row : all;
      if (s >= 0)
        multiply_states(step, in, layer, static_cast<const T*>(hidden + s * layer.units), layer.steps * layer.units,
                        to);
      else if (s >= -layer.hidden_rows)
        multiply_states(step, in, layer, layer.start_hidden + (layer.hidden_rows + s) * layer.units,
                        layer.hidden_rows * layer.units, to);
    };
    if (kept && layer.hidden_rows < layer.order)
      launch_elements<1>(step, layer.product_rows() * row, ClearProducts<T>{layer, false, all});
    for (std::int64_t s = -layer.order; s < -1; ++s) multiply_state(s);
    for (std::int64_t t = 0; t < layer.steps; ++t) {
      multiply_state(t - 1);
      launch_elements<1>(step, layer.streams * layer.units,
                         StepForward<T>{layer, t, gates.data<T>(), all, hidden, cells ? cells.data<T>() : nullptr});
    }
  });
}

void recurrence_backward(Step& step, const RecurrenceInputs& in, const Tensor& outputs, const Tensor& cells,
                         const Tensor& doutputs, Tensor& gates, Tensor& products) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    const Layer<T> layer(in, outputs);
    const std::int64_t states = layer.streams * layer.units, width = layer.product_width();
    const Workspace memory = step.workspace(static_cast<std::size_t>(2 * states) * sizeof(T));
    T* const returned = memory.data<T>();
    const bool kept = layer.is_higher_order();
    T* const all = kept ? products.data<T>() : nullptr;
    if (kept)
      launch_elements<1>(step, layer.product_rows() * layer.streams * width, ClearProducts<T>{layer, true, all});
    for (std::int64_t t = layer.steps - 1; t >= 0; --t) {
      if (t + 1 < layer.steps) {
        // The gradients of what h_t was multiplied for, times the weight.
        const Operand<T> gradients = kept ? Operand<T>{all + (t + layer.order) * layer.streams * width, width}
                                          : Operand<T>{gates.data<const T>() + (t + 1) * width, layer.steps * width};
        multiply(step, Product<T>{.m = layer.streams,
                                  .n = layer.units,
                                  .k = width,
                                  .a = gradients,
                                  .b = {in.weight.data<const T>(), layer.units, 0, false},
                                  .c = returned,
                                  .row_stride = layer.units});
      }
      launch_elements<1>(step, states,
                         StepBackward<T>{layer, t, outputs.data<const T>(), cells ? cells.data<const T>() : nullptr,
                                         doutputs.data<const T>(), returned, returned + states, gates.data<T>(), all});
    }
  });
}

template <class T>
struct States {
  Layer<T> layer;
  const T* outputs;
  T* states;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / layer.units, unit = i % layer.units;
    const bool by_step = layer.is_higher_order();
    const std::int64_t stream = by_step ? row % layer.streams : row / layer.steps;
    const std::int64_t s = by_step ? row / layer.streams - layer.order : row % layer.steps - 1;
    const bool exists = s >= -layer.hidden_rows && (by_step || layer.in_sequence(stream, s + 1, 1));
    if (!exists)
      states[i] = 0;
    else if (s < 0)
      states[i] = layer.start_hidden[((stream + 1) * layer.hidden_rows + s) * layer.units + unit];
    else
      states[i] = outputs[layer.place(stream, s) + unit];
  }
};

void recurrence_states(Step& step, const RecurrenceInputs& in, const Tensor& outputs, Tensor& states) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    launch_elements<1>(step, states.count(),
                       States<T>{Layer<T>(in, outputs), outputs.data<const T>(), states.data<T>()});
  });
}

const bool bound = kernels::recurrence_forward.bind(kThisDevice, &recurrence_forward) &&
                   kernels::recurrence_backward.bind(kThisDevice, &recurrence_backward) &&
                   kernels::recurrence_states.bind(kThisDevice, &recurrence_states);

}  // namespace
}  // namespace engram::cuda::recurrence_kernels
