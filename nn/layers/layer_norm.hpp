#pragma once

#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

struct LayerNormOptions {
  double epsilon = 1e-5;
  double gain_deviation = 0;  ///< gains start N(1, its square)
};

/// Layer normalisation over the last axis: biased variance, gain 1 and bias 0 at the start. Its output has squared norm
/// n (the all-attention paper prints sqrt(n), a misprint).
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(std::int64_t width, const LayerNormOptions& options = {});
  /// Normalises x: [..., width].
  Variable forward(const Variable& x);
  /// Normalises x + residual. Both [..., width].
  Variable forward(const Variable& x, const Variable& residual);
  void visit(Visitor& visit) override;

 private:
  double epsilon_;
  Parameter gain_, bias_;  // [width]
};

}  // namespace engram
