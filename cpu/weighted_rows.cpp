#include "core/kernels/weighted_rows.hpp"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "cpu/parallel.hpp"
#include "cpu/row_dots.hpp"
#include "cpu/scaled_rows.hpp"

namespace engram::cpu {
namespace {

/// The reads of a table, one after the other: term i is weights[i] values[ids[i], :].
template <class T>
struct TableReads {
  using Element = T;
  const T* values;
  const std::int64_t* ids;
  const Compute<T>* weights;
  std::int64_t stride;

  const T* row(std::int64_t i) const { return values + ids[i] * stride; }
  Compute<T> weight(std::int64_t i) const { return weights[i]; }
};

/// Reads of one item of work: enough that the first rows of an item, which nobody asked for ahead, are few; but items
/// for several threads, where there are as many results.
constexpr std::int64_t kReadsOfItem = 4096, kItems = 16;

void weighted_rows_forward(Step&, const Tensor& values, const Tensor& ids, const Tensor& weights, Tensor& y) {
  dispatch_storage(values.dtype(), "weighted_rows", [&]<class T>() {
    using C = Compute<T>;
    const std::int64_t width = y.shape()[1], results = ids.shape()[0], reads = ids.shape()[1];
    assert(width <= values.shape()[1]);
    const TableReads<T> terms{values.data<const T>(), ids.data<const std::int64_t>(), weights.data<const C>(),
                              values.shape()[1]};
    C* out = y.data<C>();
    const std::int64_t ahead = rows_ahead(width * static_cast<std::int64_t>(sizeof(T)));
    const std::int64_t chunk = std::max<std::int64_t>(
        1, std::min(kReadsOfItem / std::max<std::int64_t>(1, reads), (results + kItems - 1) / kItems));
    parallel_chunks(results, chunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        sum_scaled_rows(terms, r * reads, (r + 1) * reads, end * reads - 1, ahead, out + r * width, width);
    });
  });
}

/// Places of an order that are one item of work. Those of a row come one after the other: it is in the cache from the
/// second on, however many there are.
constexpr std::int64_t kPlacesOfItem = 1024;

/// Rows of the places of an order, which are asked for one after the other. The ids of the uses would tell them too,
/// but these lie anywhere: every one would be waited for.
class RowsOfPlaces {
 public:
  RowsOfPlaces(const RowOrder& order, std::int64_t place)
      : rows_(order.rows.data<const std::int64_t>()), starts_(order.starts.data<const std::int32_t>()) {
    const std::int64_t distinct = order.count.data<const std::int64_t>()[0];
    number_ = std::upper_bound(starts_, starts_ + distinct, place) - starts_ - 1;
  }
  /// Of a place that is no earlier than the last one.
  std::int64_t at(std::int64_t place) {
    while (starts_[number_ + 1] <= place) ++number_;
    return rows_[number_];
  }

 private:
  const std::int64_t* rows_;
  const std::int32_t* starts_;
  std::int64_t number_;
};

void weighted_rows_weight_gradient(Step&, const Tensor& values, const Tensor& ids, const Tensor& dy,
                                   const RowOrder& order, TableColumns columns, const Target& dweights) {
  dispatch_storage(values.dtype(), "weighted_rows", [&]<class T>() {
    dispatch_storage(dy.dtype(), "weighted_rows", [&]<class D>() {
      using C = Compute<T>;
      if constexpr (std::is_same_v<C, Compute<D>>) {
        const std::int64_t width = columns.count, reads = ids.shape()[1];
        const std::int64_t part = columns.part(), parts = columns.parts();
        assert(width == values.shape()[1] && width == dy.shape()[1]);
        const T* table = values.data<const T>();
        const D* gradients = dy.data<const D>();
        const std::int32_t* uses = order.uses.data<const std::int32_t>();
        C* out = dweights.data<C>();
        const std::int64_t ahead = rows_ahead(width * static_cast<std::int64_t>(sizeof(T) + sizeof(D))) / 2;
        parallel_chunks(ids.count(), kPlacesOfItem, [&](std::int64_t begin, std::int64_t end) {
          RowsOfPlaces rows(order, begin), later_rows(order, begin);
          for (std::int64_t place = begin; place < end; ++place) {
            const std::int64_t place_ahead = std::min(place + ahead, end - 1);
            const std::int64_t use = uses[place], use_ahead = uses[place_ahead], row = rows.at(place);
            assert(row >= 0 && row < values.shape()[0]);
            const C product = dot_rows(table + row * width, gradients + use / reads * width,
                                       table + later_rows.at(place_ahead) * width,
                                       gradients + use_ahead / reads * width, part, parts);
            out[use] = dweights.write == Write::add ? out[use] + product : product;
          }
        });
      }
    });
  });
}

const bool bound = kernels::weighted_rows_forward.bind(DeviceKind::cpu, &weighted_rows_forward) &&
                   kernels::weighted_rows_weight_gradient.bind(DeviceKind::cpu, &weighted_rows_weight_gradient);

}  // namespace
}  // namespace engram::cpu
