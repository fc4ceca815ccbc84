#pragma once
/// Reading parts of a file.

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace engram::data {

/// A stream of the file's bytes. Where it is not open, errno says why.
inline std::ifstream open_stream(const std::filesystem::path& path) {
  for (;;) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (file.is_open() || errno != EINTR) return file;
  }
}

}  // namespace engram::data
