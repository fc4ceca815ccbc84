#pragma once
/// Files mapped into memory to be read: what is not touched takes no memory.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace engram {

/// Reading is undefined when another program shortens the file meanwhile; one that replaces it is harmless.
struct MappedFile {
  std::shared_ptr<const std::byte> data;  ///< null for an empty file
  std::size_t size = 0;

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

/// Throws FileError "<reader>: '<path>': ..." for what cannot be opened or mapped, a folder, a device, a pipe and a
/// socket. `reader`: who wants it, for messages.
MappedFile map_file(const std::filesystem::path& path, std::string_view reader);

}  // namespace engram
