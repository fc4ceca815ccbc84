#pragma once
/// How far each head of a layer looks back. Sukhbaatar et al.: "Adaptive Attention Span in Transformers" (2019), with
/// the span as a share zeta of the largest span S: z = S zeta positions.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "autograd/variable.hpp"
#include "core/kernels/attention.hpp"
#include "core/names.hpp"
#include "nn/module.hpp"
#include "nn/past/span_extent.hpp"
#include "nn/visitor.hpp"

namespace engram {

enum class SpanKind : std::uint8_t {
  adaptive,  ///< one span per head, learned
  fixed,     ///< every head sees the last max_span positions, no mask
  dynamic    ///< one span per head and query, computed from the hidden state: the same paper, section 2.3
};
constexpr auto names_of(SpanKind) {
  return std::to_array<Named<SpanKind>>(
      {{SpanKind::adaptive, "adaptive"}, {SpanKind::fixed, "fixed"}, {SpanKind::dynamic, "dynamic"}});
}

struct SpanOptions {
  SpanKind kind = SpanKind::adaptive;
  std::int64_t max_span = 0;  ///< S, positions
  int ramp = 32;              ///< R, positions: width of the soft edge
  double init = 0;            ///< zeta at the start, in [0, 1]; adaptive only
  int mask_offset = 0;        ///< 1: the paper's mask argument, one position earlier
  RampGradient ramp_gradient = RampGradient::inclusive;
};

class AttentionSpan final : public Module {
 public:
  /// H heads that look at the context, of a layer of `width`. The parameter of adaptive spans has `allocated` numbers,
  /// at least H: a model whose other heads see no context keeps theirs, unused, as the released counts have it.
  AttentionSpan(int heads, std::int64_t width, const SpanOptions& options, int allocated = 0);

  const SpanOptions& options() const { return options_; }
  /// zeta, by hidden states x [B, M, width]: [H] adaptive; [B, M, H] dynamic, sigmoid(v_h . x + b_h); absent when spans
  /// are fixed.
  Variable forward(const Variable& x);
  /// The span loss of this layer: lambda S times the mean of zeta over heads (and queries), a scalar [1]. `zeta` is
  /// what forward() gave; absent when that is. `share`: 1 / number of pieces of a split batch.
  Variable penalty(const Variable& zeta, double lambda, double share) const;

  /// Reads zeta from the device into the host's copy below: after loading and after every update. Throws Error naming
  /// the head when a value is not finite.
  void refresh(Backend& backend) { refresh(backend, std::array{this}); }
  /// Refreshes all layers of a model in one copy: their parameters lie in one block of a ParameterStore, those that are
  /// frozen in another one.
  static void refresh(Backend& backend, std::span<AttentionSpan* const> spans);
  /// Takes the mean of dynamic spans over some text, [H], for reports: they are no parameters.
  void take_means(std::vector<double> zeta);
  /// zeta of each head; all 1 when spans are fixed; when they are dynamic, the means taken last.
  const std::vector<double>& zeta() const { return zeta_; }
  /// Positions that each head can see: min(S, ceil(z) + ramp); S when fixed.
  std::vector<std::int64_t> reach() const;
  /// What there is to compute and to keep. The window of a head is its reach and the corner of the ramp, rounded up by
  /// stepped_window(), at most S; S unless spans are adaptive: those of queries are not known on the host. States are
  /// kept for min(S, window + 64) positions, with the layer's window a multiple of 64 below S, or a step more: a span
  /// may grow before the next block.
  const SpanExtent& extent() const { return extent_; }
  const HeadWindows& windows() const { return extent_.windows; }
  std::int64_t cache_length() const { return extent_.cache_length; }

  void visit(Visitor& visit) override;

 private:
  /// The start of dynamic spans: sigmoid(-4) S positions, as in the paper.
  static constexpr double kDynamicBias = -4;

  static void refresh_block(Backend& backend, std::span<AttentionSpan* const> spans, bool frozen);
  std::int64_t reach(std::size_t head) const;
  void take(const std::byte* zeta);
  void follow_zeta();

  int heads_;
  SpanOptions options_;
  std::optional<Parameter> span_;  // zeta [allocated], group "spans"
  std::optional<Parameter> span_weight_,
      span_bias_;  // v [H, width]; b [H], group "undecayed": decay would lengthen spans
  std::vector<double> zeta_;
  bool captured_ = false;             // by a device that works behind the host; known from the first refresh() on
  std::vector<std::byte> read_zeta_;  // as the device has it; kept, like the next, to save an allocation in every step
  std::vector<std::int32_t> wanted_windows_;
  SpanExtent extent_;
};

}  // namespace engram
