#include "apps/studies/product_keys/row_norms.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dtype.hpp"

namespace engram {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
  void add(double number) {
    sum += number;
    ++count;
  }
  std::optional<double> value() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

}  // namespace

RowNorms row_norms(const PaddedTable& table, Backend& backend, const std::function<bool(std::int64_t row)>& was_read) {
  const std::int64_t rows = table.rows.shape()[0], stride = table.rows.shape()[1];
  Mean read, unread;
  dispatch_storage(table.rows.dtype(), "row norms", [&]<class T>() {
    const std::int64_t row_bytes = stride * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t most = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
    std::vector<T> piece(static_cast<std::size_t>(std::min(most, rows) * stride));
    for (std::int64_t first = 0; first < rows; first += most) {
      const std::int64_t count = std::min(most, rows - first);
      backend.copy(piece.data(), table.rows.data<const T>() + first * stride,
                   static_cast<std::size_t>(count * row_bytes), CopyKind::device_to_host);
      for (std::int64_t row = 0; row < count; ++row) {
        double squares = 0;
        for (std::int64_t i = 0; i < table.width; ++i) {
          const auto number = static_cast<double>(static_cast<Compute<T>>(piece[std::size_t(row * stride + i)]));
          squares += number * number;
        }
        (was_read(first + row) ? read : unread).add(std::sqrt(squares));
      }
    }
  });
  return {read.value(), unread.value()};
}

}  // namespace engram
