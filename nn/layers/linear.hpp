#pragma once

#include <optional>

#include "autograd/functions/linear.hpp"
#include "autograd/tape.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// What a linear map starts as. Transformer-XL: {init::normal(0.02), init::zeros()} ([transformer-xl 4.1]).
struct LinearStart {
  Initializer weight, bias;
};

/// y = W x + b. Weights and bias start uniform in +-1/sqrt(in), unless said otherwise.
class Linear final : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true);
  Linear(std::int64_t in, std::int64_t out, const LinearStart& start, bool with_bias = true);
  /// x: [..., in] -> [..., out].
  Variable forward(const Variable& x, ProductResult result = ProductResult::stored);
  /// The product alone, for an operation that adds the bias itself.
  Variable product(const Variable& x) { return linear(x, weight(x.tape()), Variable()); }
  /// [out, in], and [out] or absent: for operations that take a whole linear map.
  Variable weight(Tape& tape) { return tape.parameter(weight_); }
  Variable bias(Tape& tape) { return bias_ ? tape.parameter(*bias_) : Variable(); }
  void visit(Visitor& visit) override;

 private:
  Parameter weight_;               // [out, in]
  std::optional<Parameter> bias_;  // [out]
};

}  // namespace engram
