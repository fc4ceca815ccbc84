#pragma once
/// A tensor in a file of another program: a view of numbers that lie there, any way round.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "apps/run/weights/stored_floats.hpp"
#include "core/shape.hpp"

namespace engram {

struct ForeignTensor {
  Shape shape;
  std::optional<StoredFloat> kind;      ///< of the elements; nothing: they are no floating-point numbers
  std::span<const std::byte> stored{};  ///< the numbers, of which the tensor may be a part; not aligned
  std::int64_t first = 0;               ///< where among them the first element is
  /// From one element to the next along each axis, in numbers; the rest is not used.
  std::array<std::int64_t, Shape::kMaxRank> strides{};

  /// Row-major, without holes, from the first number on.
  static ForeignTensor dense(Shape shape, std::optional<StoredFloat> kind, std::span<const std::byte> stored);

  /// The elements from `begin` on, row-major, as `to` (f32 or f64): as many as `out` holds, which must be there. The
  /// tensor must be of floating-point numbers.
  void read(std::size_t begin, DType to, std::span<std::byte> out) const;

  /// The same elements, with the rows of an axis, which must have some, in the opposite order.
  ForeignTensor reversed(int axis) const;
  /// The same elements with some of the axes, in this order. Those left out must be of size 1.
  ForeignTensor with_axes(std::initializer_list<int> axes) const;
};

}  // namespace engram
