#include "core/shape.hpp"

#include "core/error.hpp"

namespace engram {

void Shape::reject(std::span<const std::int64_t> dims) {
  std::string list;
  for (std::int64_t size : dims) list += (list.empty() ? "" : ", ") + std::to_string(size);
  throw ShapeError(text("shape: needs at most ", kMaxRank, " axes, none negative, got [", list, "]"));
}

}  // namespace engram
