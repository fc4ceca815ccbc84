#pragma once
/// A contiguous tensor seen around one axis: [outer, size, inner], where outer and inner are the products of the sizes
/// before and after it. What concat and slice are made of.

#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "core/shape.hpp"

namespace engram {

struct AxisLayout {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;

  AxisLayout(const Shape& shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

/// The axis counted from the front. Throws ShapeError when the shape has no such axis.
inline int axis_from_front(std::string_view op, const Shape& shape, int axis) {
  if (axis < -shape.rank() || axis >= shape.rank())
    throw ShapeError(text(op, ": the axis must be one of ", shape, ", got ", axis));
  return axis < 0 ? axis + shape.rank() : axis;
}

}  // namespace engram
