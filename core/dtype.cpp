#include "core/dtype.hpp"

#include "core/error.hpp"

namespace engram {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64})
    if (name_of(dtype) == name) return dtype;
  throw UsageError(text("dtype: must be f32, f64, bf16, i32 or i64, got '", name, "'"));
}

void append_text(std::string& out, DType dtype) { out += name_of(dtype); }

void throw_not_float(DType dtype, std::string_view op) {
  throw DTypeError(text(op, ": needs f32 or f64, got ", dtype));
}

}  // namespace engram
