#include "cpu/recurrence/recurrence_steps.hpp"

namespace engram::cpu {
namespace {

template <class T>
class BackwardPass {
 public:
  BackwardPass(Step& step, const RecurrenceInputs& in, const Tensor& outputs, const Tensor& cells,
               const Tensor& doutputs, Tensor& gates, Tensor& products)
      : options_(in.options),
        size_(in, outputs),
        earlier_(in, size_),
        kind_(product_kind<T>(step, size_.steps)),
        items_(StepItems::of<T>(kind_, size_.streams, size_.units, 1)),
        multiply_(
            step, kind_, items_, size_.streams, size_.matrices * size_.units, size_.steps > 1,
            [this, weight = in.weight.data<const T>()](std::int64_t across, std::int64_t strip) {
              const std::int64_t unit = std::min(size_.units, across * items_.width + strip * kTileRows);
              return WeightStrip<T>{weight + unit, size_.units, Transpose::no, std::min(size_.units - unit, kTileRows)};
            }),
        carried_(step.workspace(static_cast<std::size_t>(size_.streams * size_.units) * sizeof(T))),
        start_cells_(options_.cell == RecurrentCell::lstm ? in.cells.data<const T>() : nullptr),
        outputs_(outputs.data<const T>()),
        cells_(cells ? cells.data<const T>() : nullptr),
        doutputs_(doutputs.data<const T>()),
        gates_(gates.data<T>()),
        products_(products ? products.data<T>() : nullptr) {}

  void run() {
    std::fill_n(carried_.template data<T>(), size_.streams * size_.units, T(0));
    if (options_.higher_order()) clear_unused();
    for (std::int64_t t = size_.steps - 1; t >= 0; --t) {
      const bool multiplied = t + 1 < size_.steps;
      if (multiplied && options_.higher_order()) take_products(t);
      if (multiplied) multiply_.rows_are_ready(t);
      parallel_items_on_threads(items_.count(), [&](std::int64_t item, int thread) {
        T* const results = multiply_.results(thread);
        const std::int64_t row = items_.first_row(item), rows = std::min(items_.rows, size_.streams - row);
        if (multiplied) multiply_.multiply(item, t, results);
        const std::int64_t first = items_.first_unit(item), end = std::min(size_.units, first + items_.width);
        for (std::int64_t i = 0; i < rows; ++i)
          for_lanes<T>(first, end, [&](std::int64_t unit, std::int64_t count) {
            Vector dh = load_lanes(doutputs_ + place(row + i, t) + unit, count);
            if (multiplied) dh += load_lanes(results + i * items_.columns + unit - first, count);
            if (options_.cell == RecurrentCell::lstm)
              lstm(row + i, t, unit, count, dh);
            else
              squashed(row + i, t, unit, count, dh);
          });
      });
    }
  }

 private:
  using Vector = typename CellLanes<T>::Vector;
  using Math = typename CellLanes<T>::Math;

  std::int64_t place(std::int64_t stream, std::int64_t t) const { return (stream * size_.steps + t) * size_.units; }
  T* gate(std::int64_t stream, std::int64_t t) const { return gates_ + place(stream, t) * size_.inputs; }
  T* product(std::int64_t stream, std::int64_t s) const {
    return products_ + ((s + size_.order) * size_.streams + stream) * size_.matrices * size_.units;
  }

  /// Products that no step of this chunk reads: their gradient is zero.
  void clear_unused() {
    const std::int64_t pairs = size_.matrices / size_.order;
    parallel_items(size_.product_rows() * size_.streams, [&](std::int64_t row) {
      const std::int64_t s = row / size_.streams - size_.order;
      for (std::int64_t m = 1; m <= size_.order; ++m)
        if (s + m < 0 || s + m >= size_.steps)
          for (std::int64_t pair = 0; pair < pairs; ++pair)
            std::fill_n(product(row % size_.streams, s) + (pair * size_.order + m - 1) * size_.units, size_.units,
                        T(0));
    });
  }
  /// The gradients of all products of h_t, complete now, for the one product that they go through.
  void take_products(std::int64_t t) {
    const std::int64_t length = size_.matrices * size_.units;
    parallel_chunks(size_.streams, row_chunk(length), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t stream = begin; stream < end; ++stream)
        multiply_.set(t, stream, 0, length, static_cast<const T*>(product(stream, t)));
    });
  }
  /// The gradient of pre-activations, for the step before: zero where the sequence begins here.
  void hand_back(std::int64_t stream, std::int64_t t, std::int64_t column, std::int64_t count, const Vector& gradient) {
    if (t == 0) return;
    if (earlier_.in_sequence(stream, t, 1))
      multiply_.set(t - 1, stream, column, count, gradient);
    else
      multiply_.set_zero(t - 1, stream, column, count);
  }

  void lstm(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count, const Vector& dh) {
    Vector gates[4];
    T* const from = gate(stream, t) + unit;
    for (std::int64_t g = 0; g < 4; ++g) gates[g] = load_lanes(from + g * size_.units, count);
    T* const carry = carried_.template data<T>() + stream * size_.units + unit;
    const Vector cell = load_lanes(cells_ + place(stream, t) + unit, count);
    const bool exists = earlier_.cell(stream, t);
    Vector before{}, dcell = load_lanes(carry, count);
    if (exists)
      before = load_lanes(t > 0 ? cells_ + place(stream, t - 1) + unit
                                : start_cells_ + ((stream + 1) * size_.cell_rows - 1) * size_.units + unit,
                          count);
    lstm_backward<Math>(gates[0], gates[1], gates[2], gates[3], cell, before, dh, dcell);
    store_lanes(carry, count, exists ? dcell : Vector{});
    for (std::int64_t g = 0; g < 4; ++g) {
      store_lanes(from + g * size_.units, count, gates[g]);
      hand_back(stream, t, g * size_.units + unit, count, gates[g]);
    }
  }
  /// The cells that end in a tanh.
  void squashed(std::int64_t stream, std::int64_t t, std::int64_t unit, std::int64_t count, const Vector& dh) {
    T* const to = gate(stream, t) + unit;
    const Vector da = through_tanh(dh, load_lanes(outputs_ + place(stream, t) + unit, count));
    store_lanes(to, count, da);
    if (!options_.higher_order()) return hand_back(stream, t, unit, count, da);
    double weight = 1;
    for (std::int64_t m = 1; m <= size_.order; ++m) {
      weight *= options_.decay;
      const bool exists = earlier_.hidden(stream, t, m);
      T* const met = product(stream, t - m) + (m - 1) * size_.units + unit;
      if (options_.cell == RecurrentCell::hornn_fofe) {
        store_lanes(met, count, exists ? Vector(static_cast<T>(weight) * da) : Vector{});
        continue;
      }
      T* const place_of_gate = met + size_.order * size_.units;
      const Vector q = load_lanes(to + m * size_.units, count);
      const Vector dq = exists ? through_sigmoid(Vector(da * load_lanes(met, count)), q) : Vector{};
      store_lanes(to + m * size_.units, count, dq);
      store_lanes(place_of_gate, count, dq);
      store_lanes(met, count, exists ? Vector(da * q) : Vector{});
    }
  }

  const RecurrenceOptions& options_;
  RecurrenceSizes size_;
  EarlierStates earlier_;
  StepProductKind kind_;
  StepItems items_;
  StepProducts<T> multiply_;
  Workspace carried_;
  const T* start_cells_;
  const T* outputs_;
  const T* cells_;
  const T* doutputs_;
  T* gates_;
  T* products_;
};

void recurrence_backward(Step& step, const RecurrenceInputs& in, const Tensor& outputs, const Tensor& cells,
                         const Tensor& doutputs, Tensor& gates, Tensor& products) {
  dispatch_float(outputs.dtype(), "recurrence", [&]<class T>() {
    BackwardPass<T> pass(step, in, outputs, cells, doutputs, gates, products);
    if (step.computes()) pass.run();
  });
}

const bool bound = kernels::recurrence_backward.bind(DeviceKind::cpu, &recurrence_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
