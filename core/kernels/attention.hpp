#pragma once
/// Attention over a sliding window with relative positions, an adaptive span per head and persistent slots, all in
/// one softmax. Sukhbaatar et al.: "Adaptive Attention Span in Transformers" (2019), eq. 5-8 and, with a span of every
/// query, its dynamic attention span; "Augmenting Self-attention with Persistent Memory" (2019), eq. 9-13, where
/// position_values are the p(t, c) beside the values in eq. 4 and 13. With min_distance 0, two queries and per-head
/// position keys it is the relative attention of Dai et al.: "Transformer-XL" (2019), section 3.3.

#include <algorithm>

#include "core/kernel.hpp"
#include "core/names.hpp"
#include "core/rules/head_windows.hpp"

namespace engram {

/// Which of the slots where the ramp has a corner pass gradient to the span.
enum class RampGradient : std::uint8_t {
  inclusive,  ///< both corners, 0 <= raw <= 1
  right,      ///< the derivative for a growing span, 0 <= raw < 1
  open        ///< neither, 0 < raw < 1
};
constexpr auto names_of(RampGradient) {
  return std::to_array<Named<RampGradient>>(
      {{RampGradient::inclusive, "inclusive"}, {RampGradient::right, "right"}, {RampGradient::open, "open"}});
}

struct AttentionOptions {
  int heads = 1;
  double score_scale = 1;       ///< multiplies content and position scores; usually 1 / sqrt(depth)
  double slot_score_scale = 1;  ///< multiplies the scores of persistent slots
  double slot_value_scale = 1;  ///< multiplies the values of persistent slots; sqrt(N) in the paper
  int min_distance = 1;         ///< 1: a query does not see its own position; 0: it does
  int max_distance = 0;         ///< S, positions; 0: no context at all, only persistent slots
  int ramp = 0;                 ///< R, positions: width of the soft edge of the span; 0: no span mask
  int mask_offset = 0;          ///< 0: the mask's argument is distance - 1; 1: it is the distance
  /// Distances from it on have equal rows in position_keys, so that one product serves them all; 0: not known. A
  /// device may leave it alone.
  std::int64_t shared_distance = 0;
  RampGradient ramp_gradient = RampGradient::inclusive;
  DropoutRule dropout;          ///< on the normalised weights
  HeadWindows windows;          ///< positions computed per head, at most max_distance; also the layout of the past
  std::int64_t past_count = 0;  ///< where the ring buffers of the past start: positions appended so far; 0: no ring
};

/// What attention reads and may have a gradient of: T is Tensor, Target (of the gradient) or Variable. B streams, M
/// positions in the block, H heads of depth D, N persistent slots.
template <class T>
struct AttentionOperands {
  T content_query;    ///< [B, M, H D]
  T position_query;   ///< [B, M, H D]; empty: the content query
  T past_keys;        ///< [B windows.total, D], packed (HeadWindows); empty when windows.total is 0
  T past_values;      ///< the same
  T keys;             ///< [B, M, H D], of the block; empty when max_distance is 0
  T values;           ///< the same
  T position_keys;    ///< [P, D], shared by the heads, or [P, H D]; row i belongs to distance min_distance + i;
                      ///< empty: no positions
  T position_values;  ///< the same shapes and rows, added to the values of the context; may be the same as
                      ///< position_keys; empty: values have no positions
  T slot_keys;        ///< [H, N, D]; empty: no persistent slots
  T slot_values;      ///< [H, N, D]
  T span;  ///< zeta in [0, 1]: [H], or [B, M, H] for a span of every query (windows must reach it); empty: no
           ///< span mask. f32 beside bf16, which would round it to many positions
};

/// One of them: its name in listings, and which it is.
template <class T>
struct AttentionOperand {
  using Member = T AttentionOperands<T>::*;  // named, or nvcc hands g++ parentheses that it warns of
  const char* name;
  Member member;
};
/// All of them, in the order of the autograd function's inputs; the span is the last.
template <class T>
inline constexpr AttentionOperand<T> kAttentionOperands[] = {
    {"content_query", &AttentionOperands<T>::content_query},
    {"position_query", &AttentionOperands<T>::position_query},
    {"past_keys", &AttentionOperands<T>::past_keys},
    {"past_values", &AttentionOperands<T>::past_values},
    {"keys", &AttentionOperands<T>::keys},
    {"values", &AttentionOperands<T>::values},
    {"position_keys", &AttentionOperands<T>::position_keys},
    {"position_values", &AttentionOperands<T>::position_values},
    {"slot_keys", &AttentionOperands<T>::slot_keys},
    {"slot_values", &AttentionOperands<T>::slot_values},
    {"span", &AttentionOperands<T>::span}};

struct AttentionInputs : AttentionOperands<Tensor> {
  Tensor past_valid;  ///< [B] i32: how many past positions exist; older ones get weight 0, but their rows must be
                      ///< finite. Empty: all take part
};

/// The gradients that are wanted; each may be empty. Same shapes as the inputs. No two share memory.
using AttentionGradients = AttentionOperands<Target>;

/// Whether every query has a span of its own.
inline bool has_query_spans(const AttentionInputs& in) { return in.span && in.span.shape().rank() == 3; }

/// Elements of a head's row in kept weights (see attention_forward): N persistent slots and the slots of its window.
inline std::int64_t kept_row_length(const AttentionInputs& in, const AttentionOptions& options, std::int64_t head) {
  const std::int64_t persistent = in.slot_keys ? in.slot_keys.shape()[1] : 0;
  if (options.max_distance == 0) return persistent;
  const std::int64_t window = options.windows.window[static_cast<std::size_t>(head)];
  return persistent + std::max<std::int64_t>(0, window + 1 - options.min_distance);
}
/// Elements of the kept weights of one call.
inline std::int64_t kept_weights_count(const AttentionInputs& in, const AttentionOptions& options) {
  std::int64_t row = 0;
  for (std::int64_t head = 0; head < options.heads; ++head) row += kept_row_length(in, options, head);
  return in.content_query.shape()[0] * in.content_query.shape()[1] * row;
}

/// For observers of kernels.
inline void collect_tensors(std::vector<TensorArgument>& list, const AttentionInputs& in) {
  for (const auto& [name, member] : kAttentionOperands<Tensor>) list.push_back({&(in.*member), false});
  list.push_back({&in.past_valid, false});
}
inline void collect_tensors(std::vector<TensorArgument>& list, const AttentionGradients& out) {
  for (const auto& [name, member] : kAttentionOperands<Target>) collect_tensors(list, out.*member);
}

namespace kernels {

/// For stream b, head h, query m, with delta = distance and x = delta - 1 + mask_offset:
///   score(delta) = score_scale (content_query . key + position_query . position_key[delta])
///   score(n)     = slot_score_scale content_query . slot_key[n]
///   mask(delta)  = clamp((ramp + S zeta_h - x) / ramp, 0, 1), 1 without span; 0 outside the window; 1 for slots n
///   weight_i     = mask_i exp(score_i - lse), lse = log sum_i mask_i exp(score_i)
///   out          = sum_i r_i weight_i value_i, r_i the dropout multiplier, slot values times slot_value_scale; in the
///                  context value_i is value + position_value[delta]
/// zeta_h is the query's own, zeta_bmh, where span is [B, M, H].
/// out: [B, M, H D]; lse: [B, H, M]. A query that sees nothing has out = 0 and lse = -infinity.
/// Dropout: element ((b H + h) M + m) stride + slot, where slot is max_distance - delta for the context (oldest first)
/// and reach + n for persistent slots; reach = max_distance + 1 - min_distance, rounded up to 8, and stride = reach +
/// N, rounded up to 8. So the bits do not depend on windows or tiles.
/// kept: [kept_weights_count], or empty: the backward pass computes scores and random bits again. One row for every
/// head, stream and query, in this order: N persistent slots, then the places of the window, oldest first. Elements are
/// e_i = exp(score_i - lse), weights without their mask, with the sign bit set where dropout drops them; 0 where the
/// mask is 0, except at the corners of a ramp. A device whose backward pass always computes again has 0 there too.
inline constinit Kernel<void(const AttentionInputs& inputs, const AttentionOptions& options, RandomStream random,
                             Tensor& out, Tensor& lse, Tensor& kept)>
    attention_forward{"attention_forward"};

/// With a_i the weights, e_i = exp(score_i - lse), g_i = r_i dout . value_i and D = dout . out:
///   dscore_i = a_i (g_i - D);  dmask_i = e_i (g_i - D);  dspan_h = S / ramp * sum of dmask_i over slots on the ramp;
///   dspan_bmh, where every query has its span, is the query's part of that sum;
///   dvalue_i += a_i r_i dout, and so does dposition_value[delta] for slots of the context.
/// In the sum for the span, score_i - lse is capped at 18 (a slot just outside the mask is not part of lse).
/// kept: what the forward pass kept, or empty.
inline constinit Kernel<void(const AttentionInputs& inputs, const AttentionOptions& options, RandomStream random,
                             const Tensor& out, const Tensor& lse, const Tensor& kept, const Tensor& dout,
                             const AttentionGradients& gradients)>
    attention_backward{"attention_backward"};

}  // namespace kernels
}  // namespace engram
