#pragma once
/// Attention of recurrent language models over a short window, and the delayed parts of their states, as loops:
/// [key-value-predict 1.3, 1.5, 1.7, 2]. Rows of earlier chunks stand before those of the block: [B, C + M, n] beside
/// [B, M, n]. preceding: [B, M], the distance of each position to the first one of its sequence.

#include "tests/reference/array64.hpp"

namespace engram::reference {

struct WindowAttention {
  Array64 context;  // [B, M, n]
  Array64 weights;  // [B, M, L]: offsets -L .. -1 (or 1 - L .. 0), 0 where there is no position
};

/// e_j = vector . tanh(keys_j + queries_t) over the `window` positions before t. pad_with_zeros: those that do not
/// exist have keys and values of zeros.
WindowAttention additive_window(const Array64& keys, const Array64& queries, const Array64& vector,
                                const Array64& values, const Array64& preceding, std::int64_t window,
                                bool pad_with_zeros = false);

/// p_j = softmax of (keys_j + position_keys[window - 1 - (t - j)]) . queries_t over j = t - window + 1 .. t; the
/// context is that of values_j + position_values[window - 1 - (t - j)]. Position tables [window, k] may be not given.
WindowAttention dot_window(const Array64& keys, const Array64& queries, const Array64& values,
                           const Array64& position_keys, const Array64& position_values, const Array64& preceding,
                           std::int64_t window);

/// Part s of `parts` equal ones of the row s steps earlier, or zeros. x: [B, C + M, k]; result [B, M, k].
Array64 delayed_parts(const Array64& x, const Array64& preceding, std::int64_t parts);

}  // namespace engram::reference
