#pragma once
/// Multi-head attention of the positions of a window among themselves, each seeing itself and those before it: Vaswani
/// et al.: "Attention Is All You Need" (2017), section 3.2, with biases on all four maps. Positions are in the input,
/// and nothing is remembered of what came before the window. [product-key 1.6].

#include <cstdint>
#include <map>

#include "autograd/variable.hpp"
#include "core/rules/head_windows.hpp"
#include "nn/layers/attention_trace.hpp"
#include "nn/layers/linear.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

struct WindowAttentionOptions {
  std::int64_t width = 0;
  int heads = 1;                ///< must divide width
  double dropout = 0;           ///< on the attention weights
  std::int64_t keep_bytes = 0;  ///< attention weights are kept for the backward pass when they take no more
};

/// What all layers share in one forward pass over windows of equal length: how far back their queries see, and what
/// the kernel wants to know of a past that is not there.
struct WindowContext {
  HeadWindows windows;
  Variable past;      ///< zero vectors, packed: [B windows.total, width / heads]; absent for windows of one position
  Tensor past_valid;  ///< none of them exists: zeros, i32 [B]
};

/// Makes the contexts of a model; the windows of every length are made once.
class WindowContexts {
 public:
  explicit WindowContexts(std::int64_t heads) : heads_(heads) {}
  /// For x: [B, M, width], the input of the layers; in memory of the step.
  WindowContext of(const Variable& x);

 private:
  std::int64_t heads_;
  std::map<std::int64_t, HeadWindows> windows_;  // by length
};

class WindowAttention final : public Module {
 public:
  explicit WindowAttention(const WindowAttentionOptions& options);
  /// x: [B, M, width], windows of M positions; `context` of the same shape. Returns [B, M, width]. Fills `trace`, if
  /// one is given.
  Variable forward(const Variable& x, const WindowContext& context, AttentionTrace* trace = nullptr);
  void visit(Visitor& visit) override;

 private:
  WindowAttentionOptions options_;
  Linear query_, key_, value_, output_;
};

}  // namespace engram
