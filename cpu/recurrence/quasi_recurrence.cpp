#include "core/kernels/quasi_recurrence.hpp"

#include <algorithm>

#include "core/tensor.hpp"
#include "cpu/parallel.hpp"
#include "cpu/recurrence/recurrence_lanes.hpp"

namespace engram::cpu {
namespace {

/// Where the numbers of a stream and a unit are, step after step, and whether a cell comes before one of them.
template <class T>
class QuasiSteps {
 public:
  QuasiSteps(const Tensor& start, const Tensor& preceding, const Tensor& cells)
      : streams_(cells.shape()[0]),
        steps_(cells.shape()[1]),
        units_(cells.shape()[2]),
        start_rows_(start.shape()[1]),
        start_(start.data<const T>()),
        cells_(cells.data<const T>()),
        preceding_(preceding.data<const std::int32_t>()) {}

  std::int64_t steps() const { return steps_; }
  std::int64_t units() const { return units_; }
  std::int64_t place(std::int64_t stream, std::int64_t t) const { return (stream * steps_ + t) * units_; }
  /// c_{t-1} of a stream, nullptr where there is none.
  const T* cell_before(std::int64_t stream, std::int64_t t) const {
    if (preceding_[stream * steps_ + t] < 1) return nullptr;
    if (t > 0) return cells_ + place(stream, t - 1);
    return start_rows_ > 0 ? start_ + ((stream + 1) * start_rows_ - 1) * units_ : nullptr;
  }

  /// Calls body(stream, unit, count) for all units of all streams, some neighbouring ones at a time: each goes through
  /// all steps alone.
  template <class Body>
  void for_units(Body&& body) const {
    constexpr std::int64_t kLanes = sizeof(typename CellLanes<T>::Vector) / sizeof(T);
    constexpr std::int64_t kTogether = 64;  // units of an item
    const std::int64_t pieces = (units_ + kTogether - 1) / kTogether;
    parallel_items(streams_ * pieces, [&](std::int64_t item) {
      const std::int64_t first = item % pieces * kTogether, end = std::min(units_, first + kTogether);
      for (std::int64_t unit = first; unit < end; unit += kLanes)
        body(item / pieces, unit, std::min(kLanes, end - unit));
    });
  }

 private:
  std::int64_t streams_, steps_, units_, start_rows_;
  const T* start_;
  const T* cells_;
  const std::int32_t* preceding_;
};

void quasi_recurrence_forward(Step&, const Tensor& start, const Tensor& preceding, Tensor& gates, Tensor& outputs,
                              Tensor& cells) {
  dispatch_float(outputs.dtype(), "quasi_recurrence", [&]<class T>() {
    using Vector = typename CellLanes<T>::Vector;
    using Math = typename CellLanes<T>::Math;
    const QuasiSteps<T> of(start, preceding, cells);
    const std::int64_t units = of.units();
    of.for_units([&, to = outputs.data<T>(), kept = cells.data<T>(), all = gates.data<T>()](
                     std::int64_t stream, std::int64_t unit, std::int64_t count) {
      for (std::int64_t t = 0; t < of.steps(); ++t) {
        T* const from = all + 3 * of.place(stream, t) + unit;
        const T* const before = of.cell_before(stream, t);
        Vector z = load_lanes<T>(from, count), f = load_lanes<T>(from + units, count),
               o = load_lanes<T>(from + 2 * units, count), cell{};
        if (before != nullptr) cell = load_lanes<T>(before + unit, count);
        const Vector h = qrnn_forward<Math>(z, f, o, cell);
        store_lanes(from, count, z);
        store_lanes(from + units, count, f);
        store_lanes(from + 2 * units, count, o);
        store_lanes(kept + of.place(stream, t) + unit, count, cell);
        store_lanes(to + of.place(stream, t) + unit, count, h);
      }
    });
  });
}

void quasi_recurrence_backward(Step&, const Tensor& start, const Tensor& preceding, const Tensor& cells,
                               const Tensor& doutputs, Tensor& gates) {
  dispatch_float(cells.dtype(), "quasi_recurrence", [&]<class T>() {
    using Vector = typename CellLanes<T>::Vector;
    const QuasiSteps<T> of(start, preceding, cells);
    const std::int64_t units = of.units();
    of.for_units([&, dh = doutputs.data<const T>(), kept = cells.data<const T>(), all = gates.data<T>()](
                     std::int64_t stream, std::int64_t unit, std::int64_t count) {
      Vector carried{};
      for (std::int64_t t = of.steps() - 1; t >= 0; --t) {
        T* const from = all + 3 * of.place(stream, t) + unit;
        const T* const before = of.cell_before(stream, t);
        Vector z = load_lanes<T>(from, count), f = load_lanes<T>(from + units, count),
               o = load_lanes<T>(from + 2 * units, count), previous{};
        if (before != nullptr) previous = load_lanes<T>(before + unit, count);
        const std::int64_t place = of.place(stream, t) + unit;
        qrnn_backward<Vector>(z, f, o, load_lanes<T>(kept + place, count), previous, load_lanes<T>(dh + place, count),
                              carried);
        if (before == nullptr) carried = Vector{};
        store_lanes(from, count, z);
        store_lanes(from + units, count, f);
        store_lanes(from + 2 * units, count, o);
      }
    });
  });
}

const bool bound = kernels::quasi_recurrence_forward.bind(DeviceKind::cpu, &quasi_recurrence_forward) &&
                   kernels::quasi_recurrence_backward.bind(DeviceKind::cpu, &quasi_recurrence_backward);

}  // namespace
}  // namespace engram::cpu
