#include "core/kernels/quasi_recurrence.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda::quasi_recurrence_kernels {
namespace {

/// What a thread needs to find its way; copied to the device as bytes.
template <class T>
struct Steps {
  const T* start;
  const std::int32_t* preceding;
  std::int64_t streams, steps, units, start_rows;

  Steps(const Tensor& start_cells, const Tensor& before, const Tensor& cells)
      : start(start_cells.data<const T>()),
        preceding(before.data<const std::int32_t>()),
        streams(cells.shape()[0]),
        steps(cells.shape()[1]),
        units(cells.shape()[2]),
        start_rows(start_cells.shape()[1]) {}

  __device__ std::int64_t place(std::int64_t stream, std::int64_t t) const { return (stream * steps + t) * units; }
  /// c_{t-1} of a stream, nullptr where there is none.
  __device__ const T* cell_before(const T* cells, std::int64_t stream, std::int64_t t) const {
    if (preceding[stream * steps + t] < 1) return nullptr;
    if (t > 0) return cells + place(stream, t - 1);
    return start_rows > 0 ? start + ((stream + 1) * start_rows - 1) * units : nullptr;
  }
};

/// One unit of one stream, all steps.
template <class T>
struct Forward {
  Steps<T> of;
  T* gates;
  T* outputs;
  T* cells;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t stream = i / of.units, unit = i % of.units;
    for (std::int64_t t = 0; t < of.steps; ++t) {
      const std::int64_t place = of.place(stream, t);
      T* const gate = gates + 3 * place + unit;
      const T* const before = of.cell_before(cells, stream, t);
      T z = gate[0], f = gate[of.units], o = gate[2 * of.units], cell = before == nullptr ? T(0) : before[unit];
      outputs[place + unit] = qrnn_forward<NumberMath>(z, f, o, cell);
      cells[place + unit] = cell;
      gate[0] = z;
      gate[of.units] = f;
      gate[2 * of.units] = o;
    }
  }
};

template <class T>
struct BackwardSteps {
  Steps<T> of;
  const T* cells;
  const T* doutputs;
  T* gates;

  template <int>
  __device__ void run(std::int64_t i) const {
    const std::int64_t stream = i / of.units, unit = i % of.units;
    T carried = 0;
    for (std::int64_t t = of.steps - 1; t >= 0; --t) {
      const std::int64_t place = of.place(stream, t);
      T* const gate = gates + 3 * place + unit;
      const T* const before = of.cell_before(cells, stream, t);
      T z = gate[0], f = gate[of.units], o = gate[2 * of.units];
      const T cell = cells[place + unit], previous = before == nullptr ? T(0) : before[unit];
      const T dhidden = doutputs[place + unit];
      qrnn_backward(z, f, o, cell, previous, dhidden, carried);
      if (before == nullptr) carried = 0;
      gate[0] = z;
      gate[of.units] = f;
      gate[2 * of.units] = o;
    }
  }
};

void quasi_recurrence_forward(Step& step, const Tensor& start, const Tensor& preceding, Tensor& gates, Tensor& outputs,
                              Tensor& cells) {
  dispatch_float(outputs.dtype(), "quasi_recurrence", [&]<class T>() {
    const Steps<T> of(start, preceding, cells);
    launch_elements<1>(step, of.streams * of.units,
                       Forward<T>{of, gates.data<T>(), outputs.data<T>(), cells.data<T>()});
  });
}

void quasi_recurrence_backward(Step& step, const Tensor& start, const Tensor& preceding, const Tensor& cells,
                               const Tensor& doutputs, Tensor& gates) {
  dispatch_float(cells.dtype(), "quasi_recurrence", [&]<class T>() {
    const Steps<T> of(start, preceding, cells);
    launch_elements<1>(step, of.streams * of.units,
                       BackwardSteps<T>{of, cells.data<const T>(), doutputs.data<const T>(), gates.data<T>()});
  });
}

const bool bound = kernels::quasi_recurrence_forward.bind(kThisDevice, &quasi_recurrence_forward) &&
                   kernels::quasi_recurrence_backward.bind(kThisDevice, &quasi_recurrence_backward);

}  // namespace
}  // namespace engram::cuda::quasi_recurrence_kernels
