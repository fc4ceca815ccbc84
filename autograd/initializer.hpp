#pragma once
/// How a parameter gets its first values: plain data, so that counting needs no memory.

#include <cstdint>
#include <string_view>

#include "core/tensor.hpp"

namespace engram {

struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double value = 0;  ///< the constant; the bound a of U(mean - a, mean + a); the deviation s of N(mean, s^2)
  double mean = 0;   ///< of the uniform and the normal kind
  /// The random stream; 0: the parameter's name decides. Parameters of equal shape with one stream start equal.
  std::uint64_t stream = 0;
  /// Elements from `fixed_begin` (included) to `fixed_end` (excluded) of the tensor are `fixed` instead.
  std::int64_t fixed_begin = 0, fixed_end = 0;
  double fixed = 0;

  /// Fills host memory of `count` elements (f32, f64 or bf16), numbers first_number, first_number + 1, ... of a tensor.
  /// They depend on seed, name (or stream) and number only, so adding a parameter elsewhere changes nothing here.
  /// Throws DTypeError for other dtypes.
  void fill(void* data, DType dtype, std::int64_t count, std::uint64_t seed, std::string_view name,
            std::int64_t first_number = 0) const;
};

}  // namespace engram
