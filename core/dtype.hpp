#pragma once
/// Element types of tensors.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/bf16.hpp"

namespace engram {

enum class DType : std::uint8_t { f32, f64, bf16, i32, i64 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::f64 || dtype == DType::i64 ? 8 : dtype == DType::bf16 ? 2 : 4;
}
/// Whether its elements are whole numbers: ids and counts.
constexpr bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
/// "f32", "f64", "bf16", "i32" or "i64".
std::string_view name_of(DType dtype);
/// The inverse of name_of; throws UsageError on any other text.
DType parse_dtype(std::string_view name);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<bf16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_const_t<T>>::value;

/// What kernels compute in and keep sums, statistics and vectors of parameters in: bf16 is storage only.
constexpr DType compute_dtype(DType storage) { return storage == DType::bf16 ? DType::f32 : storage; }
/// compute_dtype() for C++ types.
template <class T>
struct ComputeType {
  using Type = T;
};
template <>
struct ComputeType<bf16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeType<std::remove_const_t<T>>::Type;

/// For messages (core/error.hpp): its name.
void append_text(std::string& out, DType dtype);

/// Throws the DTypeError of dispatch_float.
[[noreturn]] void throw_not_float(DType dtype, std::string_view op);

/// Calls `body.operator()<T>()` with the C++ type of a computing dtype, f32 or f64.
/// Throws DTypeError naming `op` for the others.
template <class Body>
decltype(auto) dispatch_float(DType dtype, std::string_view op, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return std::forward<Body>(body).template operator()<float>();
    case DType::f64:
      return std::forward<Body>(body).template operator()<double>();
    default:
      throw_not_float(dtype, op);
  }
}

/// dispatch_float() with bf16 too, for kernels that move elements, or that read and write T and compute in Compute<T>.
template <class Body>
decltype(auto) dispatch_storage(DType dtype, std::string_view op, Body&& body) {
  if (dtype == DType::bf16) return std::forward<Body>(body).template operator()<bf16>();
  return dispatch_float(dtype, op, std::forward<Body>(body));
}

}  // namespace engram
