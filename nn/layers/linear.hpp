#pragma once

#include <optional>

#include "autograd/functions/linear.hpp"
#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// y = W x + b. Weights and bias start uniform in +-1/sqrt(in).
class Linear final : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true);
  /// Weights start as `weights` says, the bias at 0.
  Linear(std::int64_t in, std::int64_t out, const Initializer& weights);
  /// x: [..., in] -> [..., out].
  Variable forward(const Variable& x, ProductResult result = ProductResult::stored);
  void visit(Visitor& visit) override;

 private:
  Parameter weight_;               // [out, in]
  std::optional<Parameter> bias_;  // [out]
};

}  // namespace engram
