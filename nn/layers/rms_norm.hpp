#pragma once

#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Root mean square layer normalisation over the last axis (Zhang and Sennrich, 2019); gain 1 at the start.
class RmsNorm final : public Module {
 public:
  /// epsilon: above 0, added to the mean square; throws UsageError otherwise.
  explicit RmsNorm(std::int64_t width, double epsilon = 1e-5);
  /// x: [..., width].
  Variable forward(const Variable& x);
  void visit(Visitor& visit) override;

 private:
  Parameter gain_;  // [width]
  double epsilon_;
};

}  // namespace engram
