#pragma once
/// Gradients of a table's rows that a test writes down, as the tensors of a device.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/backend.hpp"
#include "core/kernels/row_optimizer.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness {

struct RowUsesOnHost {
  std::vector<std::int64_t> ids;  ///< [R, A]
  std::vector<double> weights;    ///< [R, A]
  Array64 sources;                ///< [R, width]

  std::int64_t per_source() const { return static_cast<std::int64_t>(ids.size()) / sources.shape[0]; }
};

template <class T>
Tensor copied_to(Backend& backend, Allocator& memory, const std::vector<T>& numbers, Shape shape) {
  Tensor made(shape, dtype_of<T>, backend.device(), memory);
  if (!numbers.empty()) backend.copy(made.raw(), numbers.data(), made.bytes(), CopyKind::host_to_device);
  return made;
}
/// Any element type but those of integers.
inline Tensor numbers_to(Backend& backend, Allocator& memory, const std::vector<double>& numbers, Shape shape,
                         DType dtype) {
  return dispatch_storage(dtype, "test", [&]<class T>() {
    std::vector<T> stored;
    for (const double number : numbers) stored.push_back(static_cast<T>(static_cast<Compute<T>>(number)));
    return copied_to(backend, memory, stored, shape);
  });
}

/// As order_row_uses defines it.
inline RowOrder order_on_device(Backend& backend, Allocator& memory, const std::vector<std::int64_t>& ids,
                                std::int64_t table_rows) {
  const auto uses = static_cast<std::int64_t>(ids.size()), capacity = std::min(uses, table_rows);
  std::vector<std::int32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t use) { return ids[static_cast<std::size_t>(use)]; });
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> starts;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::int64_t id = ids[static_cast<std::size_t>(order[place])];
    if (!rows.empty() && rows.back() == id) continue;
    rows.push_back(id);
    starts.push_back(static_cast<std::int32_t>(place));
  }
  const std::vector<std::int64_t> count{static_cast<std::int64_t>(rows.size())};
  rows.resize(static_cast<std::size_t>(capacity), -1);
  starts.resize(static_cast<std::size_t>(capacity) + 1, static_cast<std::int32_t>(uses));
  return {.uses = copied_to(backend, memory, order, {uses}),
          .rows = copied_to(backend, memory, rows, {capacity}),
          .starts = copied_to(backend, memory, starts, {capacity + 1}),
          .count = copied_to(backend, memory, count, {1})};
}

/// Weights have the dtype that `sources` is computed in.
inline RowGradients row_gradients(Backend& backend, Allocator& memory, const RowUsesOnHost& uses,
                                  std::int64_t table_rows, DType sources) {
  const std::int64_t results = uses.sources.shape[0], width = uses.sources.shape[1];
  const Shape shape{results, uses.per_source()};
  return {.uses = {.ids = copied_to(backend, memory, uses.ids, shape),
                   .weights = numbers_to(backend, memory, uses.weights, shape, compute_dtype(sources)),
                   .sources = numbers_to(backend, memory, uses.sources.data, {results, width}, sources)},
          .order = order_on_device(backend, memory, uses.ids, table_rows),
          .sums = {}};
}

}  // namespace engram::harness
