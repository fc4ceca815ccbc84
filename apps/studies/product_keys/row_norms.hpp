#pragma once
/// How long the rows of a memory's table are, by whether they were read: rows that nothing reads stay as they started,
/// or fade with weight decay. [product-key 8].

#include <cstdint>
#include <functional>
#include <optional>

#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

/// Mean Euclidean lengths; none where there are no such rows.
struct RowNorms {
  std::optional<double> read, unread;
};

/// A table [rows, width] whose rows may be padded.
struct PaddedTable {
  Tensor rows;  ///< [rows, width or more], f32, f64 or bf16
  std::int64_t width = 0;
};

/// The table is on the backend's device, and is brought to the host piece by piece.
RowNorms row_norms(const PaddedTable& table, Backend& backend, const std::function<bool(std::int64_t row)>& was_read);

}  // namespace engram
