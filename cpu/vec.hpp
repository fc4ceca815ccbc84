#pragma once
/// Eigen's view of plain memory: one row as an array, for vectorised element-wise expressions.

#include <Eigen/Core>
#include <cstdint>
#include <type_traits>

#include "core/write.hpp"

namespace engram::cpu {

/// `count` elements from `data` as an array expression; const memory gives a const map.
template <class T>
auto vec(T* data, std::int64_t count) {
  using Array = Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Array, Array>>(data, count);
}

/// Sets or adds an expression of the same size.
template <class Map, class Expression>
void store(Map to, const Expression& value, Write write) {
  if (write == Write::add)
    to += value;
  else
    to = value;
}

}  // namespace engram::cpu
