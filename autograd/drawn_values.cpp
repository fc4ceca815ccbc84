#include "autograd/drawn_values.hpp"

#include <algorithm>
#include <future>
#include <vector>

namespace engram {
namespace {

/// Initializer::fill() of `count` numbers of those that are held.
void fill_columns(const Initializer& initializer, std::byte* data, DType dtype, std::int64_t count,
                  const TableColumns& columns, std::uint64_t seed, std::string_view name, std::int64_t first) {
  if (columns.are_all()) return initializer.fill(data, dtype, count, seed, name, first);
  for (const std::int64_t end = first + count; first < end;) {
    const std::int64_t row = first / columns.count, column = first % columns.count;
    const std::int64_t here = std::min(columns.count - column, end - first);
    initializer.fill(data, dtype, here, seed, name, row * columns.whole + columns.begin + column);
    data += static_cast<std::size_t>(here) * size_of(dtype);
    first += here;
  }
}

}  // namespace

void draw_values(const Initializer& initializer, DType dtype, std::int64_t count, const TableColumns& columns,
                 std::uint64_t seed, std::string_view name, int threads,
                 const std::function<void(std::int64_t first, std::span<const std::byte> values)>& take) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 18;
  const auto bytes_of = [dtype](std::int64_t numbers) { return static_cast<std::size_t>(numbers) * size_of(dtype); };
  std::vector<std::vector<std::byte>> pieces(
      static_cast<std::size_t>(std::min<std::int64_t>(std::max(1, threads), (count + kPiece - 1) / kPiece)),
      std::vector<std::byte>(bytes_of(std::min(count, kPiece))));
  for (std::int64_t first = 0; first < count;) {
    std::vector<std::future<void>> drawn;
    std::int64_t begin = first;
    for (std::size_t i = 0; i < pieces.size() && begin < count; ++i, begin += kPiece)
      drawn.push_back(std::async(std::launch::async, [&, i, begin] {
        fill_columns(initializer, pieces[i].data(), dtype, std::min(kPiece, count - begin), columns, seed, name, begin);
      }));
    for (std::size_t i = 0; i < drawn.size(); ++i, first += kPiece) {
      drawn[i].get();
      take(first, std::span(pieces[i]).first(bytes_of(std::min(kPiece, count - first))));
    }
  }
}

}  // namespace engram
