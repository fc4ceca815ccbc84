#pragma once
/// Writing one array in NumPy's format (.npy, version 1.0), which most tools for plotting read.

#include <filesystem>
#include <span>

namespace engram {

/// A one-dimensional array of little-endian 32-bit floats. Replaces the file as a whole; throws FileError.
void write_npy(const std::filesystem::path& path, std::span<const float> values);

}  // namespace engram
