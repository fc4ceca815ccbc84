#pragma once

#include "autograd/functions/batch_norm.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Batch normalisation of every feature over the rows of a call: gain 1 and bias 0 at the start, and two buffers, the
/// running mean, 0 at the start, and the running variance, 1, with which inference normalises. [product-key 1.3].
class BatchNorm final : public Module {
 public:
  /// width: features, at least 1. rule: epsilon above 0, momentum from 0 to 1. Throws UsageError otherwise.
  explicit BatchNorm(std::int64_t width, BatchNormRule rule = {});
  /// x: [..., width]; rows that the mask leaves out become zero. On a training tape it updates the running statistics,
  /// in every call, unless both are frozen: see batch_norm(). Throws as that does.
  Variable forward(const Variable& x, const RowMask& mask = {});
  void visit(Visitor& visit) override;

 private:
  Parameter gain_, bias_;                      // [width]
  Parameter running_mean_, running_variance_;  // [width], buffers
  BatchNormRule rule_;
};

}  // namespace engram
