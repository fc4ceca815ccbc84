// Gradients of a table's rows: the sums of kernels/row_order.hpp. Rows of up to 256 uses are one sum each; longer ones
// are cut into pieces of 256, whose sums are added in pairs. The cut depends on the uses alone, and a row that
// everybody reads keeps all threads busy.

#include <algorithm>
#include <vector>

#include "core/kernels/row_order.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_sums.hpp"
#include "cpu/scaled_rows.hpp"
#include "cpu/vec.hpp"
#include "cpu/zero_if_set.hpp"

namespace engram::cpu {

template <class D>
void sum_uses(const UsedSources<D>& terms, std::int64_t begin, std::int64_t end, std::int64_t last, Compute<D>* sum) {
  const std::int64_t ahead = rows_ahead(terms.width * static_cast<std::int64_t>(sizeof(D)));
  sum_scaled_rows(terms, begin, end, last, ahead, sum, terms.width);
}
template void sum_uses(const UsedSources<float>&, std::int64_t, std::int64_t, std::int64_t, float*);
template void sum_uses(const UsedSources<double>&, std::int64_t, std::int64_t, std::int64_t, double*);
template void sum_uses(const UsedSources<bf16>&, std::int64_t, std::int64_t, std::int64_t, float*);

namespace {

constexpr std::int64_t kPiece = kUsesOfPiece;
constexpr std::int64_t kBranches = 2;   // of the tree of pieces
constexpr std::int64_t kColumns = 256;  // that one item of work adds up in the tree
constexpr std::int64_t kRows = 64;      // of an item of work

/// A row of more than kPiece uses, whose pieces' sums begin at piece number `first` of a workspace.
struct LongRow {
  std::int64_t row, first, pieces;  // `row` is a place in RowOrder::rows
};

std::pmr::vector<LongRow> long_rows(Step& step, const std::int32_t* starts, std::int64_t rows) {
  std::pmr::vector<LongRow> found(step.objects());
  std::int64_t first = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t uses = starts[row + 1] - starts[row];
    if (uses <= kPiece) continue;
    found.push_back({row, first, (uses + kPiece - 1) / kPiece});
    first += found.back().pieces;
  }
  return found;
}

/// The sums of pieces [0, pieces) of `width` numbers each, in the first of them.
template <class C>
void add_pieces(C* sums, std::int64_t pieces, std::int64_t width, std::int64_t begin, std::int64_t end) {
  for (std::int64_t distance = 1; distance < pieces; distance *= kBranches)
    for (std::int64_t to = 0; to < pieces; to += distance * kBranches)
      for (std::int64_t from = to + distance; from < std::min(pieces, to + distance * kBranches); from += distance)
        vec(sums + to * width + begin, end - begin) += vec(sums + from * width + begin, end - begin);
}

/// The sums of all rows. Place: take(u, sum) gets that of row u from elsewhere; make(u, thread, make_sum) calls
/// make_sum(to) for memory in which the sum is made.
template <class D, class Place>
void sum_rows(Step& step, const RowUses& uses, const RowOrder& order, const Place& place) {
  using C = Compute<D>;
  const std::int64_t width = uses.width();
  if (!step.computes()) {
    // Which rows are long depends on what was read: as many pieces as if all uses were of such rows.
    const Workspace counted = step.workspace(static_cast<std::size_t>(uses.count() / kPiece * width) * sizeof(C));
    return;
  }
  const std::int64_t rows = order.count.data<const std::int64_t>()[0];
  const std::int32_t* starts = order.starts.data<const std::int32_t>();
  const UsedSources<D> terms{order.uses.data<const std::int32_t>(), uses.weights.data<const C>(),
                             uses.sources.data<const D>(), std::max<std::int64_t>(1, uses.per_source()), width};
  const std::pmr::vector<LongRow> longer = long_rows(step, starts, rows);
  const std::int64_t pieces = longer.empty() ? 0 : longer.back().first + longer.back().pieces;
  const Workspace memory = step.workspace(static_cast<std::size_t>(pieces * width) * sizeof(C));
  C* const sums = memory.data<C>();
  parallel_items(pieces, [&](std::int64_t piece) {
    const auto of = std::ranges::upper_bound(longer, piece, {}, &LongRow::first) - 1;
    const std::int64_t begin = starts[of->row] + (piece - of->first) * kPiece;
    const std::int64_t end = std::min<std::int64_t>(begin + kPiece, starts[of->row + 1]);
    sum_uses(terms, begin, end, end - 1, sums + piece * width);
  });
  const std::int64_t columns = (width + kColumns - 1) / kColumns;
  parallel_items(static_cast<std::int64_t>(longer.size()) * columns, [&](std::int64_t item) {
    const LongRow& row = longer[static_cast<std::size_t>(item / columns)];
    const std::int64_t begin = item % columns * kColumns;
    add_pieces(sums + row.first * width, row.pieces, width, begin, std::min(width, begin + kColumns));
  });
  parallel_items(static_cast<std::int64_t>(longer.size()), [&](std::int64_t item) {
    const LongRow& row = longer[static_cast<std::size_t>(item)];
    place.take(row.row, sums + row.first * width);
  });

  parallel_items_on_threads((rows + kRows - 1) / kRows, [&](std::int64_t item, int thread) {
    const std::int64_t begin = item * kRows, end = std::min(rows, begin + kRows);
    const std::int64_t last = starts[end] - 1;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = starts[row], behind = starts[row + 1];
      if (behind - first <= kPiece) place.make(row, thread, [&](C* to) { sum_uses(terms, first, behind, last, to); });
    }
  });
}

template <class C>
struct IntoSums {
  C* sums;
  std::int64_t width;

  void take(std::int64_t row, const C* sum) const { std::copy_n(sum, width, sums + row * width); }
  template <class Make>
  void make(std::int64_t row, int, const Make& make_sum) const {
    make_sum(sums + row * width);
  }
};

void sum_row_uses(Step& step, const RowUses& uses, const RowOrder& order, Tensor& sums) {
  dispatch_storage(uses.sources.dtype(), "sum_row_uses", [&]<class D>() {
    using C = Compute<D>;
    const std::int64_t width = uses.width();
    if (!step.computes()) return sum_rows<D>(step, uses, order, IntoSums<C>{nullptr, width});
    const std::int64_t rows = order.count.data<const std::int64_t>()[0];
    C* out = sums.data<C>();
    C* const rest = out + rows * width;
    parallel_chunks(sums.count() - rows * width, kElementChunk,
                    [&](std::int64_t begin, std::int64_t end) { std::fill(rest + begin, rest + end, C(0)); });
    sum_rows<D>(step, uses, order, IntoSums<C>{out, width});
  });
}

/// A row's sum is complete before it is added.
template <class C>
struct IntoTable {
  C* table;
  const std::int64_t* rows;
  C* scratch;  // [threads, width]
  std::int64_t width;

  void take(std::int64_t row, const C* sum) const { vec(table + rows[row] * width, width) += vec(sum, width); }
  template <class Make>
  void make(std::int64_t row, int thread, const Make& make_sum) const {
    C* const sum = scratch + thread * width;
    make_sum(sum);
    take(row, sum);
  }
};

void add_row_uses(Step& step, const RowUses& uses, const RowOrder& order, const Target& dtable) {
  dispatch_storage(uses.sources.dtype(), "add_row_uses", [&]<class D>() {
    using C = Compute<D>;
    const std::int64_t width = uses.width();
    C* out = dtable.data<C>();
    if (step.computes()) zero_if_set<C>(dtable);
    const Workspace memory = step.workspace(static_cast<std::size_t>(max_threads() * width) * sizeof(C));
    sum_rows<D>(step, uses, order, IntoTable<C>{out, order.rows.data<const std::int64_t>(), memory.data<C>(), width});
  });
}

const bool bound = kernels::sum_row_uses.bind(DeviceKind::cpu, &sum_row_uses, KernelMemory::workspace) &&
                   kernels::add_row_uses.bind(DeviceKind::cpu, &add_row_uses, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
