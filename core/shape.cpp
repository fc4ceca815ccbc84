#include "core/shape.hpp"

#include "core/error.hpp"

namespace engram {

void Shape::reject(std::span<const std::int64_t> dims) {
  std::string list;
  for (std::int64_t size : dims) list += (list.empty() ? "" : ", ") + std::to_string(size);
  throw ShapeError(text("shape: needs at most ", kMaxRank, " axes, none negative, got [", list, "]"));
}

void Shape::check_product() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) {
    const std::int64_t size = dims_[axis];
    if (size < 0) reject({dims_.data(), static_cast<std::size_t>(rank_)});
    if (size > 0 && product > kMostElements / size)
      throw ShapeError(text("shape: must have at most 2^60 - 1 elements, got ", *this));
    if (size > 0) product *= size;
  }
}

void append_text(std::string& out, const Shape& shape) {
  out += '[';
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out += ", ";
    append_text(out, shape[axis]);
  }
  out += ']';
}

}  // namespace engram
