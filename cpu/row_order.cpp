#include "core/kernels/row_order.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

/// The number of a use and the row that it reads. Rows of tables of up to 2^33 leave room for both in one word.
struct PackedUse {
  static constexpr int kUseBits = 31;
  std::uint64_t word;

  static PackedUse of(std::int64_t row, std::int64_t use) {
    return {static_cast<std::uint64_t>(row) << kUseBits | static_cast<std::uint64_t>(use)};
  }
  std::uint64_t row() const { return word >> kUseBits; }
  std::int32_t use() const { return static_cast<std::int32_t>(word & ((std::uint64_t{1} << kUseBits) - 1)); }
};
struct WideUse {
  std::uint64_t of_row;
  std::int32_t number;

  static WideUse of(std::int64_t row, std::int64_t use) {
    return {static_cast<std::uint64_t>(row), static_cast<std::int32_t>(use)};
  }
  std::uint64_t row() const { return of_row; }
  std::int32_t use() const { return number; }
};

/// A pass of the sort goes through chunks of the uses: it counts each one's digits, and then every chunk knows where
/// its own go. The order of what is equal stays, so the result is one and the same for any cut.
constexpr std::int64_t kChunk = 32768;
constexpr int kMostDigitBits = 11;

/// How many passes of how many bits each sort the rows of a table.
struct Digits {
  int passes, bits;

  explicit Digits(std::int64_t table_rows) {
    const int all = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(0, table_rows - 1)));
    passes = std::max(1, (all + kMostDigitBits - 1) / kMostDigitBits);
    bits = (all + passes - 1) / passes;
  }
  std::uint64_t mask() const { return (std::uint64_t{1} << bits) - 1; }
};

/// One pass: to = the uses from(i), i < count, in order of their digit at `shift`. `places`: [chunks, 2^bits].
template <class Use, class From>
void sort_by_digit(std::int64_t count, const From& from, int shift, const Digits& digits, std::int32_t* places,
                   Use* to) {
  const std::uint64_t mask = digits.mask();
  const auto values = static_cast<std::int64_t>(mask) + 1;
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  parallel_items(chunks, [&](std::int64_t chunk) {
    std::int32_t* const counts = places + chunk * values;
    std::fill_n(counts, values, 0);
    for (std::int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i)
      ++counts[from(i).row() >> shift & mask];
  });
  std::int32_t place = 0;
  for (std::int64_t value = 0; value < values; ++value)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      std::int32_t& first = places[chunk * values + value];
      place += std::exchange(first, place);
    }
  parallel_items(chunks, [&](std::int64_t chunk) {
    std::int32_t* const next = places + chunk * values;
    for (std::int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
      const Use use = from(i);
      to[next[use.row() >> shift & mask]++] = use;
    }
  });
}

/// The numbers of the uses, and the distinct rows with their starts: a chunk first counts its own rows.
template <class Use>
void write_order(Step& step, const Use* sorted, std::int64_t count, RowOrder& order) {
  std::int32_t* uses = order.uses.data<std::int32_t>();
  std::int64_t* rows = order.rows.data<std::int64_t>();
  std::int32_t* starts = order.starts.data<std::int32_t>();
  const std::int64_t capacity = order.rows.count(), chunks = (count + kChunk - 1) / kChunk;
  const auto is_first = [sorted](std::int64_t i) { return i == 0 || sorted[i].row() != sorted[i - 1].row(); };
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks) * sizeof(std::int64_t));
  if (!step.computes()) return;
  std::int64_t* const before = memory.data<std::int64_t>();
  parallel_items(chunks, [&](std::int64_t chunk) {
    std::int64_t found = 0;
    for (std::int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
      uses[i] = sorted[i].use();
      found += is_first(i) ? 1 : 0;
    }
    before[chunk] = found;
  });
  std::int64_t distinct = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) distinct += std::exchange(before[chunk], distinct);
  parallel_items(chunks, [&](std::int64_t chunk) {
    std::int64_t row = before[chunk];
    for (std::int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
      if (!is_first(i)) continue;
      rows[row] = static_cast<std::int64_t>(sorted[i].row());
      starts[row++] = static_cast<std::int32_t>(i);
    }
  });
  std::fill(rows + distinct, rows + capacity, std::int64_t{-1});
  std::fill(starts + distinct, starts + capacity + 1, static_cast<std::int32_t>(count));
  order.count.data<std::int64_t>()[0] = distinct;
}

template <class Use>
void order_uses(Step& step, const std::int64_t* ids, std::int64_t count, std::int64_t table_rows, RowOrder& order) {
  const Digits digits(table_rows);
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  const Workspace first = step.workspace(static_cast<std::size_t>(count) * sizeof(Use));
  const Workspace second = step.workspace(static_cast<std::size_t>(count) * sizeof(Use));
  const Workspace counts = step.workspace(static_cast<std::size_t>(chunks) << digits.bits << 2);
  if (!step.computes()) return write_order<Use>(step, nullptr, count, order);
  Use* sorted = first.data<Use>();
  Use* other = second.data<Use>();
  const auto as_given = [ids, table_rows](std::int64_t i) {
    assert(ids[i] >= 0 && ids[i] < table_rows);
    (void)table_rows;
    return Use::of(ids[i], i);
  };
  sort_by_digit(count, as_given, 0, digits, counts.data<std::int32_t>(), sorted);
  for (int pass = 1; pass < digits.passes; ++pass) {
    const auto as_sorted = [sorted](std::int64_t i) { return sorted[i]; };
    sort_by_digit(count, as_sorted, pass * digits.bits, digits, counts.data<std::int32_t>(), other);
    std::swap(sorted, other);
  }
  write_order(step, sorted, count, order);
}

void order_row_uses(Step& step, const Tensor& ids, std::int64_t table_rows, RowOrder& order) {
  const std::int64_t* rows = ids.data<const std::int64_t>();
  if (table_rows <= std::int64_t{1} << (64 - PackedUse::kUseBits))
    order_uses<PackedUse>(step, rows, ids.count(), table_rows, order);
  else
    order_uses<WideUse>(step, rows, ids.count(), table_rows, order);
}

void stamp_rows(Step& step, const RowOrder& order, Tensor& stamps) {
  const auto now = static_cast<std::int32_t>(step.scalars()->step + 1);
  const std::int64_t* rows = order.rows.data<const std::int64_t>();
  auto* const of_rows = stamps.data<std::int32_t>();
  parallel_chunks(order.count.data<const std::int64_t>()[0], kElementChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t u = begin; u < end; ++u) of_rows[rows[u]] = now;
  });
}

const bool bound = kernels::order_row_uses.bind(DeviceKind::cpu, &order_row_uses, KernelMemory::workspace) &&
                   kernels::stamp_rows.bind(DeviceKind::cpu, &stamp_rows);

}  // namespace
}  // namespace engram::cpu
