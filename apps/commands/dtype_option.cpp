#include "apps/commands/dtype_option.hpp"

#include "core/error.hpp"

namespace engram {

DType dtype_option(std::string_view command, std::string_view name, bool takes_bf16) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    if (name == name_of(dtype) && (dtype != DType::bf16 || takes_bf16)) return dtype;
  throw UsageError(
      text(command, ": --dtype must be ", takes_bf16 ? "f32, bf16 or f64" : "f32 or f64", ", got '", name, "'"));
}

}  // namespace engram
