#pragma once

#include <utility>

#include "autograd/functions/add.hpp"
#include "nn/layers/layer_norm.hpp"

namespace engram {

/// The sum of states x and what a sublayer f makes of them, with its layer norm: LN(f(x) + x), or f(LN(x)) + x
/// (pre-norm).
class Residual final : public Module {
 public:
  Residual(LayerNorm norm, bool pre_norm) : norm_(std::move(norm)), pre_norm_(pre_norm) {}

  /// What the sublayer takes of x: [..., width].
  Variable before(const Variable& x) { return pre_norm_ ? norm_.forward(x) : x; }
  /// What comes out in the end, where the sublayer made y of before(x). Both [..., width].
  Variable after(const Variable& y, const Variable& x) { return pre_norm_ ? add(y, x) : norm_.forward(y, x); }
  /// The norm for a sublayer that does before() by itself, with more than x; nullptr: it has nothing to do.
  LayerNorm* pre_norm() { return pre_norm_ ? &norm_ : nullptr; }
  /// Shows the norm's parameters as its own.
  void visit(Visitor& visit) override { norm_.visit(visit); }

 private:
  LayerNorm norm_;
  bool pre_norm_;
};

}  // namespace engram
