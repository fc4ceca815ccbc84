#pragma once

#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Layer normalisation over the last axis: biased variance, epsilon 1e-5, gain 1 and bias 0 at the start. Its output
/// has squared norm n (the all-attention paper prints sqrt(n), a misprint).
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(std::int64_t width);
  /// Normalises x + residual. Both [..., width].
  Variable forward(const Variable& x, const Variable& residual);
  void visit(Visitor& visit) override;

 private:
  Parameter gain_, bias_;  // [width]
};

}  // namespace engram
