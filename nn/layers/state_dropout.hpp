#pragma once
/// Dropout of hidden states: of single elements, or of features of a stream in all positions of a segment at once.

#include "autograd/functions/dropout.hpp"
#include "core/error.hpp"

namespace engram {

struct StateDropout {
  double rate = 0;
  /// One mask for all positions: Gal and Ghahramani, "A Theoretically Grounded Application of Dropout in Recurrent
  /// Neural Networks" (2016); spec of the Transformer-XL family, section 4.6.
  bool over_time = false;

  /// x: [B, M, width], or [P, width] without streams; the same shape.
  Variable operator()(const Variable& x) const {
    if (over_time && rate > 0)
      throw NotAvailable("model: dropout_over_time has no operation yet, got a rate above 0\n  use false");
    return dropout(x, rate);
  }
};

}  // namespace engram
