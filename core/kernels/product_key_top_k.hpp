#pragma once
/// Selection of the best slots of a product-key memory, and the way back. "Large Memory Layers with Product Keys"
/// (Lample et al. 2019), section 3; [product-key 1.1, 3].
///
/// F sets of n sub-keys each, F = 1 (flat keys), 2 or 3, name n^F slots. The slot of sub-keys (a, b, c) has the id
/// (a n + b) n + c and the score (s1[a] + s2[b]) + s3[c], each + one addition in the dtype of the half-scores; with
/// fewer sets the last terms are missing.

#include "core/kernel.hpp"

namespace engram::kernels {

/// The k best slots of every row and head, best first: by score, descending; then by the rank of the first set's
/// sub-key, then of the second's, the third's, ascending. The rank of a sub-key in its set is by score, descending,
/// then by index. NaN is below every number. So the result is that of sorting all n^F slots, except where +infinity in
/// one set meets -infinity in another: their sum is NaN, which no rank announces. Ids are in range and distinct always.
/// half_scores: [R, H, F, n], f32 or f64, n < 2^31; scores: [R, H, k] of the same dtype, 1 <= k <= n^F;
/// ids: [R, H, k] i64.
inline constinit Kernel<void(const Tensor& half_scores, Tensor& scores, Tensor& ids)> product_key_select{
    "product_key_select"};

/// The gradient of the half-scores of a selection that is held constant: dhalf_scores[r, h, f, i] = sum over j, in
/// ascending order, of those dscores[r, h, j] whose id has sub-key i in set f; zero where there is none.
/// dscores: [R, H, k], f32 or f64; ids: [R, H, k] i64 in [0, n^F); dhalf_scores: [R, H, F, n] of dscores' dtype.
inline constinit Kernel<void(const Tensor& dscores, const Tensor& ids, Tensor& dhalf_scores)> product_key_scatter{
    "product_key_scatter"};

}  // namespace engram::kernels
