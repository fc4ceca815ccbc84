#pragma once
/// The sizes of a tensor's axes: up to five, held inline, trivially copyable (it may be a kernel argument).

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace engram {

class Shape {
 public:
  static constexpr int kMaxRank = 5;
  /// Bytes of up to eight an element are then counted in 63 bits.
  static constexpr std::int64_t kMostElements = (std::int64_t{1} << 60) - 1;

  constexpr Shape() = default;
  /// Throws ShapeError for more than five axes, a negative size, or more than kMostElements elements (axes of size 0
  /// left out, so that rows() fits too).
  constexpr Shape(std::initializer_list<std::int64_t> dims)
      : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  constexpr explicit Shape(std::span<const std::int64_t> dims) {
    if (dims.size() > kMaxRank) reject(dims);
    for (std::int64_t size : dims) {
      if (size < 0) reject(dims);
      dims_[rank_++] = size;
    }
    check_count();
  }

  constexpr int rank() const { return rank_; }
  /// The size of an axis; a negative axis counts from the end.
  constexpr std::int64_t operator[](int axis) const {
    assert(axis < rank_ && axis >= -rank_);
    return dims_[axis < 0 ? axis + rank_ : axis];
  }
  /// Number of elements: 1 for rank 0.
  constexpr std::int64_t count() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= dims_[axis];
    return product;
  }
  /// Number of vectors along the last axis: the product of all axes but the last, 1 for rank 0.
  constexpr std::int64_t rows() const {
    std::int64_t product = 1;
    for (int axis = 0; axis + 1 < rank_; ++axis) product *= dims_[axis];
    return product;
  }
  /// A copy whose axis (negative: from the end) has another size. Throws as the constructor.
  constexpr Shape with(int axis, std::int64_t size) const {
    Shape changed = *this;
    changed.dims_[axis < 0 ? axis + rank_ : axis] = size;
    changed.check_count();
    return changed;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  [[noreturn]] static void reject(std::span<const std::int64_t> dims);
  /// Nearly every shape is seen to be small enough by the bits of its sizes, without a product.
  constexpr void check_count() const {
    int bits = 0;
    for (int axis = 0; axis < rank_; ++axis) bits += 64 - std::countl_zero(static_cast<std::uint64_t>(dims_[axis]));
    if (bits > 60) check_product();
  }
  void check_product() const;

  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// For messages, as "[2, 3]" (core/error.hpp).
void append_text(std::string& out, const Shape& shape);

}  // namespace engram
