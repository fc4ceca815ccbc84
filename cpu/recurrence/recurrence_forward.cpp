#include "cpu/recurrence/recurrence_steps.hpp"

namespace engram::cpu {
namespace {

template <class T>
class ForwardPass {
 public:
  ForwardPass(Step& step, const RecurrenceInputs& in, Tensor& gates, Tensor& products, Tensor& outputs, Tensor& cells)
      : options_(in.options),
        size_(in, outputs),
        earlier_(in, size_),
        kind_(product_kind<T>(step, size_.steps)),
        items_(StepItems::of<T>(kind_, size_.streams, size_.units, size_.matrices)),
        multiply_(step, kind_, items_, size_.streams, size_.units, size_.steps > 1 || size_.hidden_rows > 0,
                  [this, weight = in.weight.data<const T>()](std::int64_t across, std::int64_t strip) {
                    const std::int64_t column = strip * kTileRows;
                    const std::int64_t unit = std::min(size_.units, across * items_.width + column % items_.width);
                    const std::int64_t row = column / items_.width * size_.units + unit;
                    return WeightStrip<T>{weight + row * size_.units, size_.units, Transpose::yes,
                                          std::min(size_.units - unit, kTileRows)};
                  }),
        start_hidden_(in.hidden.data<const T>()),
        start_cells_(options_.cell == RecurrentCell::lstm ? in.cells.data<const T>() : nullptr),
        gates_(gates.data<T>()),
        products_(products ? products.data<T>() : nullptr),
        outputs_(outputs.data<T>()),
        cells_(cells ? cells.data<T>() : nullptr) {}

  void run() {
    if (options_.higher_order())
      for (std::int64_t s = -size_.order; s < -1; ++s) multiply_start(s);
    if (size_.hidden_rows > 0)
      take_start(-1, 0);
    else if (options_.higher_order())
      clear_products(-1);
    for (std::int64_t t = 0; t < size_.steps; ++t) {
      const bool multiplied = t > 0 || size_.hidden_rows > 0;
      if (multiplied) multiply_.rows_are_ready(t);
      for_items([&](std::int64_t item, T* results) {
        if (multiplied) multiply_.multiply(item, t, results);
        if (multiplied && options_.higher_order()) keep_products(item, t - 1, results);
        for_rows(item, [&](std::int64_t stream, std::int64_t row) {
          const T* const result = multiplied ? results + row * items_.columns : nullptr;
          const std::int64_t first = items_.first_unit(item), end = std::min(size_.units, first + items_.width);
          for_lanes<T>(first, end, [&](std::int64_t unit, std::int64_t count) {
            const Vector h = options_.cell == RecurrentCell::lstm
                                 ? lstm(stream, t, unit, count, result == nullptr ? result : result + unit - first)
                             : options_.higher_order()
                                 ? higher_order(stream, t, unit, count)
                                 : elman(stream, t, unit, count, result == nullptr ? result : result + unit - first);
            store_lanes(outputs_ + place(stream, t) + unit, count, h);
            if (t + 1 < size_.steps) hand_on(stream, t + 1, unit, count, h);
          });
        });
      });
    }
  }

 private:
  using Vector = typename CellLanes<T>::Vector;
  using Math = typename CellLanes<T>::Math;

  std::int64_t place(std::int64_t stream, std::int64_t t) const { return (stream * size_.steps + t) * size_.units; }
  T* gate(std::int64_t stream, std::int64_t t) const { return gates_ + place(stream, t) * size_.inputs; }
  /// All matrices times h_s of a stream.
  T* product(std::int64_t stream, std::int64_t s) const {
    return products_ + ((s + size_.order) * size_.streams + stream) * size_.matrices * size_.units;
  }

  template <class Body>
  void for_items(Body&& body) {
    parallel_items_on_threads(items_.count(),
                              [&](std::int64_t item, int thread) { body(item, multiply_.results(thread)); });
  }
  template <class Body>
  void for_rows(std::int64_t item, Body&& body) {
    const std::int64_t first = items_.first_row(item), end = std::min(size_.streams, first + items_.rows);
    for (std::int64_t stream = first; stream < end; ++stream) body(stream, stream - first);
  }
  void keep_products(std::int64_t item, std::int64_t s, const T* results) {
    const std::int64_t first = items_.first_unit(item), width = std::min(items_.width, size_.units - first);
    for_rows(item, [&](std::int64_t stream, std::int64_t row) {
      for (std::int64_t g = 0; g < size_.matrices; ++g)
        std::copy_n(results + row * items_.columns + g * items_.width, width,
                    product(stream, s) + g * size_.units + first);
    });
  }
  void clear_products(std::int64_t s) {
    std::fill_n(product(0, s), size_.streams * size_.matrices * size_.units, T(0));
  }
  /// Products of a state before the first step that no step is the next one of.
  void multiply_start(std::int64_t s) {
    if (s < -size_.hidden_rows) return clear_products(s);
    take_start(s, 1);
    multiply_.rows_are_ready(1);
    for_items([&](std::int64_t item, T* results) {
      multiply_.multiply(item, 1, results);
      keep_products(item, s, results);
    });
  }
  /// A state before the first step as operand of step t.
  void take_start(std::int64_t s, std::int64_t t) {
    for (std::int64_t stream = 0; stream < size_.streams; ++stream)
      if (!options_.higher_order() && !earlier_.in_sequence(stream, 0, 1))
        multiply_.set_zero(t, stream, 0, size_.units);
      else
        multiply_.set(t, stream, 0, size_.units, start_hidden_ + ((stream + 1) * size_.hidden_rows + s) * size_.units);
  }
  /// What h is for the next step: zero where another sequence begins. Higher-order cells ask when they read products.
  void hand_on(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count, const Vector& h) {
    if (!options_.higher_order() && !earlier_.in_sequence(stream, t, 1))
      multiply_.set_zero(t, stream, unit, count);
    else
      multiply_.set(t, stream, unit, count, h);
  }

  Vector elman(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count, const T* result) const {
    Vector x = load_lanes(gate(stream, t) + unit, count);
    if (result != nullptr) x += load_lanes(result, count);
    return Math::tanh(x);
  }
  Vector lstm(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count, const T* result) const {
    Vector gates[4];
    T* const from = gate(stream, t) + unit;
    for (std::int64_t g = 0; g < 4; ++g) {
      gates[g] = load_lanes(from + g * size_.units, count);
      if (result != nullptr) gates[g] += load_lanes(result + g * items_.width, count);
    }
    Vector cell{};
    if (earlier_.cell(stream, t))
      cell = load_lanes(t > 0 ? cells_ + place(stream, t - 1) + unit
                              : start_cells_ + ((stream + 1) * size_.cell_rows - 1) * size_.units + unit,
                        count);
    const Vector h = lstm_forward<Math>(gates[0], gates[1], gates[2], gates[3], cell);
    for (std::int64_t g = 0; g < 4; ++g) store_lanes(from + g * size_.units, count, gates[g]);
    store_lanes(cells_ + place(stream, t) + unit, count, cell);
    return h;
  }
  Vector higher_order(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count) const {
    T* const from = gate(stream, t) + unit;
    Vector x = load_lanes(from, count);
    double weight = 1;
    for (std::int64_t m = 1; m <= size_.order; ++m) {
      weight *= options_.decay;
      const bool exists = earlier_.hidden(stream, t, m);
      const T* const met = exists ? product(stream, t - m) + (m - 1) * size_.units + unit : nullptr;
      if (options_.cell == RecurrentCell::hornn_fofe) {
        if (exists) x += static_cast<T>(weight) * load_lanes(met, count);
        continue;
      }
      T* const q = from + m * size_.units;
      Vector gate = load_lanes(q, count);
      if (exists) gate += load_lanes(met + size_.order * size_.units, count);
      gate = Math::sigmoid(gate);
      store_lanes(q, count, gate);
      if (exists) x += gate * load_lanes(met, count);
    }
    return Math::tanh(x);
  }

  const RecurrenceOptions& options_;
  RecurrenceSizes size_;
  EarlierStates earlier_;
  StepProductKind kind_;
  StepItems items_;
  StepProducts<T> multiply_;
  const T* start_hidden_;
  const T* start_cells_;
  T* gates_;
  T* products_;
  T* outputs_;
  T* cells_;
};

void recurrence_forward(Step& step, const RecurrenceInputs& in, Tensor& gates, Tensor& products, Tensor& outputs,
                        Tensor& cells) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    ForwardPass<T> pass(step, in, gates, products, outputs, cells);
    if (step.computes()) pass.run();
  });
}

void recurrence_states(Step&, const RecurrenceInputs& in, const Tensor& outputs, Tensor& states) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    const RecurrenceSizes size(in, outputs);
    const EarlierStates earlier(in, size);
    const T* const start = in.hidden.data<const T>();
    const T* const hidden = outputs.data<const T>();
    T* const to = states.data<T>();
    // h_s of a stream, or zeros.
    const auto write = [&](std::int64_t stream, std::int64_t s, bool wanted, T* row) {
      if (!wanted || s < -size.hidden_rows)
        std::fill_n(row, size.units, T(0));
      else
        std::copy_n(s < 0 ? start + ((stream + 1) * size.hidden_rows + s) * size.units
                          : hidden + (stream * size.steps + s) * size.units,
                    size.units, row);
    };
    const bool by_step = in.options.higher_order();
    const std::int64_t rows = size.streams * (by_step ? size.product_rows() : size.steps);
    parallel_chunks(rows, row_chunk(size.units), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        if (by_step)
          write(row % size.streams, row / size.streams - size.order, true, to + row * size.units);
        else
          write(row / size.steps, row % size.steps - 1, earlier.in_sequence(row / size.steps, row % size.steps, 1),
                to + row * size.units);
      }
    });
  });
}

const bool bound = kernels::recurrence_forward.bind(DeviceKind::cpu, &recurrence_forward, KernelMemory::workspace) &&
                   kernels::recurrence_states.bind(DeviceKind::cpu, &recurrence_states);

}  // namespace
}  // namespace engram::cpu
