#pragma once
/// Additive attention over a short window: "Frustratingly Short Attention Spans in Neural Language Modeling" (Daniluk
/// et al. 2017), equations 1 to 3; [key-value-predict 1.3, 3.4]. Shapes, types and the rows
/// that a position sees are those of core/kernels/window_rows.hpp, whose sums follow.

#include "core/kernel.hpp"
#include "core/rules/window_rule.hpp"

namespace engram {

/// The gradients that are wanted; each may be empty. Same shapes as the inputs. No two share memory.
struct AdditiveScoreGradients {
  Target keys, queries, score_vector;
};

/// For observers of kernels.
inline void collect_tensors(std::vector<TensorArgument>& list, const AdditiveScoreGradients& out) {
  for (const Target* target : {&out.keys, &out.queries, &out.score_vector}) collect_tensors(list, *target);
}

namespace kernels {

/// weights[b, t, :] = softmax over the rows j that position t sees of
///   score = sum over i of score_vector[i] tanh(keys[b, j, i] + queries[b, t, i]);
/// with count_missing over all L columns, keys[b, j, i] being 0 in those without a row. Columns that do not count are
/// 0. keys: [B, C + M, d]; queries: [B, M, d]; score_vector: [d], of the weights' dtype.
inline constinit Kernel<void(const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                             const Tensor& preceding, const WindowRule& rule, Tensor& weights)>
    window_additive_weights{"window_additive_weights"};

/// With m = tanh(keys[b, j, i] + queries[b, t, i]), computed again, and h = dscores[b, t, column] score_vector[i]
/// (1 - m m), over the pairs of a position t and a row j that it sees:
///   dkeys[b, j, i] = sum over t of h;  dqueries[b, t, i] = sum over j of h;
///   dscore_vector[i] = sum over b, t and j of dscores[b, t, column] m.
/// With count_missing, the missing rows of a position take part as keys of zeros. dscores: [B, M, L].
inline constinit Kernel<void(const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                             const Tensor& dscores, const Tensor& preceding, const WindowRule& rule,
                             const AdditiveScoreGradients& gradients)>
    window_additive_gradients{"window_additive_gradients"};

}  // namespace kernels
}  // namespace engram
