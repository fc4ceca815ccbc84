#pragma once
/// Writing one array in NumPy's format (.npy, version 1.0), which most tools for plotting read.

#include <filesystem>
#include <span>

#include "core/dtype.hpp"

namespace engram {

/// A one-dimensional array of little-endian floats: `dtype` is f32 ('<f4'), to which the values are rounded, or f64
/// ('<f8'). Replaces the file as a whole; throws FileError, and DTypeError for another dtype.
void write_npy(const std::filesystem::path& path, std::span<const double> values, DType dtype);

}  // namespace engram
