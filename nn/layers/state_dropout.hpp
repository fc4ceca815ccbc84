#pragma once
/// Dropout of hidden states: of single elements, or of features of a stream in all positions of a segment at once.

#include "autograd/functions/dropout.hpp"

namespace engram {

struct StateDropout {
  double rate = 0;
  /// One mask for all positions: Gal and Ghahramani, "A Theoretically Grounded Application of Dropout in Recurrent
  /// Neural Networks" (2016); [transformer-xl 4.6].
  bool over_time = false;

  StateDropout(double rate_of_elements = 0, bool one_mask_over_time = false)
      : rate(rate_of_elements), over_time(one_mask_over_time) {}

  /// x: [B, M, width], or [P, width] without streams; the same shape.
  Variable operator()(const Variable& x) const { return over_time ? variational_dropout(x, rate) : dropout(x, rate); }
};

}  // namespace engram
