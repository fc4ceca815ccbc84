// Gradients of a table's rows: the sums of kernels/row_order.hpp. Rows of up to 256 uses are one sum each; longer ones
// are cut into pieces of 256, whose sums are added in pairs. How many rows and pieces there are is known to the device
// alone, so there is a warp for every piece that may exist: it looks for its own.

#include "core/kernels/row_order.hpp"
#include "cuda/elements.cuh"
#include "cuda/scaled_rows.cuh"

namespace engram::cuda::row_sums_kernels {
namespace {

constexpr std::int64_t kPiece = kUsesOfPiece;
constexpr std::int64_t kBranches = 2;  // of the tree of pieces

/// Term i is the use at place i of the order.
template <class D>
struct UsedSources {
  using Element = D;
  const std::int32_t* uses;
  const Compute<D>* weights;
  const D* sources;
  std::int64_t per_source, width;

  __device__ const D* row(std::int64_t place) const { return sources + uses[place] / per_source * width; }
  __device__ Compute<D> weight(std::int64_t place) const { return weights[uses[place]]; }
};

/// Where the rows lie in the order, and their pieces' sums in a workspace. A whole piece of 256 uses has the slot of
/// the window of 256 places in which it begins: two of them never begin in one window. The shorter piece that may end a
/// row has, in the second half, the slot of the whole one before it.
struct RowPieces {
  const std::int32_t* starts;
  const std::int64_t* distinct;
  std::int64_t count, windows;

  /// The row that has this place.
  __device__ std::int64_t row_of(std::int64_t place) const {
    std::int64_t low = 0, high = distinct[0];
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (starts[middle] <= place ? low : high) = middle;
    }
    return low;
  }
  /// The first place of the whole piece of a long row whose slot is `window`, -1: there is none. `row` becomes its row.
  __device__ std::int64_t whole_piece(std::int64_t window, std::int64_t& row) const {
    const std::int64_t last = window * kPiece + kPiece - 1;  // a whole piece that begins in the window has this place
    if (last >= count) return -1;
    row = row_of(last);
    const std::int64_t first = starts[row], end = starts[row + 1];
    const std::int64_t begin = first + (last - first) / kPiece * kPiece;
    return end - first > kPiece && begin + kPiece <= end && begin >= window * kPiece ? begin : -1;
  }
  /// Of piece number `piece` of a long row.
  __device__ std::int64_t slot(std::int64_t row, std::int64_t piece) const {
    const std::int64_t begin = starts[row] + piece * kPiece;
    return begin + kPiece <= starts[row + 1] ? begin / kPiece : windows + begin / kPiece - 1;
  }
  __device__ std::int64_t pieces(std::int64_t row) const {
    return (starts[row + 1] - starts[row] + kPiece - 1) / kPiece;
  }
};

/// The sums of the pieces: for every window its whole piece, and in the second half the short one behind it.
template <int kWidth, int kPacks, class D>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    sum_pieces(UsedSources<D> terms, RowPieces all, Compute<D>* slots) {
  using Columns = RowColumns<D, kWidth, kPacks>;
  const std::int64_t slot = row_of_warp();
  if (slot >= 2 * all.windows) return;
  std::int64_t row = 0;
  std::int64_t begin = all.whole_piece(slot % all.windows, row);
  if (begin < 0) return;
  std::int64_t end = begin + kPiece;
  if (slot >= all.windows) {
    begin = end;
    end = all.starts[row + 1];
    if (begin == end || begin + kPiece <= end) return;
  }
  const Columns sums = sum_scaled_rows<kWidth, kPacks>(terms, begin, end, blockIdx.y, terms.width);
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t column = Columns::column(blockIdx.y, p);
    if (column < terms.width) store(slots + slot * terms.width + column, sums.pack[p]);
  }
}

/// One level of the tree: the pieces at multiples of kBranches `distance` take the sums of the kBranches - 1 that
/// follow at `distance`.
template <class C>
__global__ void __launch_bounds__(kElementThreads)
    add_pieces(RowPieces all, std::int64_t distance, std::int64_t width, C* slots) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kElementThreads + threadIdx.x;
  std::int64_t row = 0;
  const std::int64_t begin = all.whole_piece(blockIdx.x, row);
  if (begin < 0 || column >= width) return;
  const std::int64_t to = (begin - all.starts[row]) / kPiece, pieces = all.pieces(row);
  if (to % (kBranches * distance) != 0) return;
  C* const sum = slots + all.slot(row, to) * width + column;
  C value = *sum;
  for (int branch = 1; branch < kBranches; ++branch) {
    const std::int64_t from = to + branch * distance;
    if (from < pieces) value += slots[all.slot(row, from) * width + column];
  }
  *sum = value;
}

/// Every row's sum goes where it belongs: to row u of a matrix, with zeros from place U on, or to row rows[u].
template <int kWidth, int kPacks, class D>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    finish_rows(UsedSources<D> terms, RowPieces all, const Compute<D>* slots, std::int64_t capacity,
                const std::int64_t* rows, Compute<D>* to, Write write) {
  using Columns = RowColumns<D, kWidth, kPacks>;
  using C = Compute<D>;
  const std::int64_t row = row_of_warp();
  const bool exists = row < all.distinct[0];
  if (row >= capacity || (!exists && rows != nullptr)) return;
  const std::int64_t begin = exists ? all.starts[row] : 0, end = exists ? all.starts[row + 1] : 0;
  Columns sums = {};
  if (end - begin <= kPiece) sums = sum_scaled_rows<kWidth, kPacks>(terms, begin, end, blockIdx.y, terms.width);
  C* const out = to + (rows != nullptr ? rows[row] : row) * terms.width;
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t column = Columns::column(blockIdx.y, p);
    if (column >= terms.width) continue;
    if (end - begin > kPiece) sums.pack[p] = load<kWidth>(slots + all.slot(row, 0) * terms.width + column);
    write_pack<kWidth>(out + column, sums.pack[p], write);
  }
}

/// rows: null for sums by place.
template <class D>
void sum_rows(Step& step, const RowUses& uses, const RowOrder& order, const std::int64_t* rows, Compute<D>* to,
              Write write) {
  using C = Compute<D>;
  const std::int64_t width = uses.width(), capacity = order.rows.count();
  const UsedSources<D> terms{order.uses.data<const std::int32_t>(), uses.weights.data<const C>(),
                             uses.sources.data<const D>(), uses.per_source(), width};
  const RowPieces all{order.starts.data<const std::int32_t>(), order.count.data<const std::int64_t>(), uses.count(),
                      uses.count() / kPiece};
  const bool has_pieces = uses.count() > kPiece;
  const Workspace memory =
      step.workspace(has_pieces ? static_cast<std::size_t>(2 * all.windows * width) * sizeof(C) : 0);
  C* const slots = memory.data<C>();
  with_row_columns<D>(width, aligned_for_packs(terms.sources, to, slots), [&]<int kWidth, int kPacks>() {
    constexpr std::int64_t kColumns = RowColumns<D, kWidth, kPacks>::kColumns;
    if (has_pieces) {
      launch(step, warp_for_each_row(2 * all.windows, width, kColumns), sum_pieces<kWidth, kPacks, D>, terms, all,
             slots);
      const std::int64_t blocks = (width + kElementThreads - 1) / kElementThreads;
      for (std::int64_t distance = 1; distance <= all.windows; distance *= kBranches)
        launch(step, {.blocks = {all.windows, blocks}, .threads = kElementThreads}, add_pieces<C>, all, distance, width,
               slots);
    }
    launch(step, warp_for_each_row(capacity, width, kColumns), finish_rows<kWidth, kPacks, D>, terms, all, slots,
           capacity, rows, to, write);
  });
}

void sum_row_uses(Step& step, const RowUses& uses, const RowOrder& order, Tensor& sums) {
  dispatch_storage(uses.sources.dtype(), "sum_row_uses",
                   [&]<class D>() { sum_rows<D>(step, uses, order, nullptr, sums.data<Compute<D>>(), Write::set); });
}

template <class C>
struct Zeros {
  C* to;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    store(to + i, Pack<C, kWidth>{});
  }
};

void add_row_uses(Step& step, const RowUses& uses, const RowOrder& order, const Target& dtable) {
  dispatch_storage(uses.sources.dtype(), "add_row_uses", [&]<class D>() {
    using C = Compute<D>;
    C* const out = dtable.data<C>();
    if (dtable.write == Write::set)
      for_each_element<C>(step, dtable.tensor.count(), aligned_for_packs(out), Zeros<C>{out});
    sum_rows<D>(step, uses, order, order.rows.data<const std::int64_t>(), out, dtable.write);
  });
}

const bool bound =
    kernels::sum_row_uses.bind(kThisDevice, &sum_row_uses) && kernels::add_row_uses.bind(kThisDevice, &add_row_uses);

}  // namespace
}  // namespace engram::cuda::row_sums_kernels
