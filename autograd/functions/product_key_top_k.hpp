#pragma once

#include <cstdint>

#include "autograd/variable.hpp"

namespace engram {

struct ProductKeySelection {
  Variable scores;  ///< [R, H, k], descending; f32 beside bf16
  Tensor ids;       ///< [R, H, k] i64 in [0, n^F): the slots, which are constants
};

/// The k best slots for every query and head of a product-key memory, in the order of
/// core/kernels/product_key_top_k.hpp: what sorting all n^F slots would give. The half-score of a sub-key is its inner
/// product with the query's part of its set, without a scale; a slot's score is the sum over its sets.
/// query: [R, H dq], head by head, and within a head set by set; keys: [H, F, n, dq / F] of the same dtype, F = 1 (flat
/// keys: one set of all slots), 2 or 3 sets. R may be 0. The gradient holds the selection constant; with k = 1 and a
/// softmax after it, nothing reaches query and keys.
///
/// Half-scores exist for a tile of rows at a time, forwards and backwards: as many rows as 8 MiB hold, but at least
/// 16, so that many flat keys are not read again for every row. Only query, keys and ids are saved.
///
/// Throws ShapeError for tensors that do not fit, for n of 2^31 or more, n^F of 2^63 or more, and for k outside
/// 1..n^F; DTypeError for keys of another dtype.
ProductKeySelection product_key_top_k(const Variable& query, const Variable& keys, std::int64_t k);

}  // namespace engram
