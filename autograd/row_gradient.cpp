#include "autograd/row_gradient.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/error.hpp"
#include "core/kernels/row_order.hpp"

namespace engram {
namespace {

/// All rows of the parts' tensors, one after the other, rank by rank.
Tensor concatenated(Step& step, std::span<const RowGradient::Part> parts, Tensor RowUses::*member) {
  std::int64_t rows = 0;
  for (const auto& part : parts) rows += (part.uses.*member).shape()[0];
  const Tensor& first = parts.front().uses.*member;
  Tensor all = step.empty(first.shape().with(0, rows), first.dtype());
  auto* to = static_cast<std::byte*>(all.raw());
  const int ranks = parts.front().ranks;
  for (int q = 0; q < ranks; ++q)
    for (const auto& part : parts) {
      const std::int64_t count = (part.uses.*member).shape()[0] / ranks;
      const Tensor from = (part.uses.*member).rows(q * count, (q + 1) * count);
      if (from.bytes() > 0) step.backend().copy(to, from.raw(), from.bytes(), CopyKind::device_to_device);
      to += from.bytes();
    }
  return all;
}

}  // namespace

RowOrder ordered(Step& step, const Tensor& ids, std::int64_t table_rows) {
  if (ids.count() > kMostRowUses)
    throw Error(text("row gradient: at most ", kMostRowUses, " uses can be put in order, got ", ids.count(),
                     "\n  smaller pieces of the batch need fewer"));
  const std::int64_t capacity = std::min(ids.count(), table_rows);
  RowOrder order{.uses = step.empty({ids.count()}, DType::i32),
                 .rows = step.empty({capacity}, DType::i64),
                 .starts = step.empty({capacity + 1}, DType::i32),
                 .count = step.empty({1}, DType::i64)};
  kernels::order_row_uses(step, ids, table_rows, order);
  return order;
}

RowGradient::Part joined(Step& step, const RowGradient& gradient, std::int64_t table_rows) {
  const std::span<const RowGradient::Part> parts = gradient.parts;
  if (parts.empty()) return {};
  const RowUses& first = parts.front().uses;
  for (const auto& part : parts) {
    if (part.uses.per_source() != first.per_source())
      throw Error(text("row gradient: all lookups of a table must have equal numbers of uses per result, got ",
                       first.per_source(), " and ", part.uses.per_source()));
    if (part.ranks != parts.front().ranks)
      throw Error(text("row gradient: as many ranks must have read in all lookups of a table, got ",
                       parts.front().ranks, " and ", part.ranks));
    if (part.uses.width() != first.width() || part.uses.sources.dtype() != first.sources.dtype() ||
        part.uses.weights.dtype() != first.weights.dtype())
      throw Error(text("row gradient: all lookups of a table must have results of one width and dtype, got ",
                       first.width(), " ", first.sources.dtype(), " and ", part.uses.width(), " ",
                       part.uses.sources.dtype()));
  }
  RowGradient::Part whole = parts.front();
  if (parts.size() > 1)
    whole = {.uses = {.ids = concatenated(step, parts, &RowUses::ids),
                      .weights = concatenated(step, parts, &RowUses::weights),
                      .sources = concatenated(step, parts, &RowUses::sources)},
             .order = {},
             .ranks = parts.front().ranks};
  if (!whole.order) whole.order = ordered(step, whole.uses.ids, table_rows);
  return whole;
}

}  // namespace engram
