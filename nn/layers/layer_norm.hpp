#pragma once

#include "autograd/variable.hpp"
#include "nn/init.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Layer normalisation over the last axis: biased variance; at the start gain 1, unless said otherwise, and bias 0. At
/// that start its output has squared norm n (the all-attention paper prints sqrt(n), a misprint).
class LayerNorm final : public Module {
 public:
  /// epsilon: above 0, added to the variance; throws UsageError otherwise.
  explicit LayerNorm(std::int64_t width, const Initializer& gain = init::ones(), double epsilon = 1e-5);
  /// Normalises x: [..., width].
  Variable forward(const Variable& x);
  /// Normalises x + residual. Both [..., width].
  Variable forward(const Variable& x, const Variable& residual);
  void visit(Visitor& visit) override;

 private:
  Parameter gain_, bias_;  // [width]
  double epsilon_;
};

}  // namespace engram
