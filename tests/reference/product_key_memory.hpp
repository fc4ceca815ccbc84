#pragma once
/// A product-key memory from its queries on, by its definition: all slots are scored and sorted. [product-key 1.1, 3].

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

struct MemoryRead {
  Array64 y;        ///< [R, value width]
  Array64 ids;      ///< [R, H, k]
  Array64 scores;   ///< [R, H, k]
  Array64 weights;  ///< [R, H, k]
};

/// queries: [R, H dq]; keys: [H, F, n, dq / F]; values: [n^F, value width].
MemoryRead product_key_memory(const Array64& queries, const Array64& keys, const Array64& values, std::int64_t k);

/// Batch norm of rows in training ([product-key 1.3]): per column, biased variance; gain and bias: [columns].
Array64 batch_norm_of_rows(const Array64& x, const Array64& gain, const Array64& bias, double epsilon);

}  // namespace engram::reference
