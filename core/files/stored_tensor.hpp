#pragma once
/// What a safetensors file (core/files/safetensors.hpp) says of its tensors, and what is written into one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace engram {

using Metadata = std::map<std::string, std::string, std::less<>>;

/// A tensor to be written.
struct TensorSource {
  std::string name;
  DType dtype;
  Shape shape;
  /// Copies the bytes [offset, offset + to.size()) of the tensor to `to`. Called with rising offsets, at most
  /// kChunkBytes at a time, so that a tensor of a device needs no whole copy on the host.
  std::function<void(std::size_t offset, std::span<std::byte> to)> read;

  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
};

/// Where a tensor lies in a file.
struct StoredTensor {
  DType dtype;
  Shape shape;
  std::size_t begin = 0;  ///< bytes from the start of the data
  std::size_t end = 0;
};

/// What becomes of tensors with elements F16 (IEEE binary16), which Engram has no dtype for.
enum class HalfFloats : std::uint8_t {
  refused,
  listed  ///< they are as other tensors, but of no dtype of Engram: listed as bf16, which has as many bytes
};

}  // namespace engram
