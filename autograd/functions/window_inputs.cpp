#include "autograd/functions/window_inputs.hpp"

#include "core/check.hpp"
#include "core/error.hpp"

namespace engram {

WindowRule window_rule(std::string_view op, std::string_view what, const Variable& rows, const Shape& block,
                       const Tensor& preceding, std::int64_t window) {
  const Shape& shape = rows.shape();
  if (shape.rank() != 3 || shape[0] != block[0] || shape[1] < block[1])
    throw ShapeError(text(op, ": ", what,
                          " must be [B, C + M, n], C carried rows before those of the block, with [B, M] = ", block,
                          ", got ", shape));
  if (window < 1) throw ShapeError(text(op, ": the window must be at least 1 position, got ", window));
  check_shape(op, "preceding", preceding, block);
  check_dtype(op, "preceding", preceding, DType::i32);
  check_same_device(op, rows.value(), preceding);
  return {.carried = shape[1] - block[1], .block = block[1], .window = window};
}

void check_value_rows(std::string_view op, const Variable& keys, const Variable& values) {
  const Shape& shape = values.shape();
  if (shape.rank() != 3 || shape[0] != keys.shape()[0] || shape[1] != keys.shape()[1])
    throw ShapeError(text(op, ": the values must be [B, C + M, n], a row beside every one of the keys, got ", shape,
                          " beside ", keys.shape()));
}

}  // namespace engram
