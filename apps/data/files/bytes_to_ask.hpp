#pragma once
/// How much of a file is read at once.

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace engram::data {

/// How many bytes to ask a descriptor for that has given `read` of them: those that are left by the file's size and one
/// more, which finds the end; `most` where that is less, or the size is none (a pipe) or was passed (a file that
/// grows). So small files need no large buffer.
inline std::size_t bytes_to_ask(int descriptor, std::int64_t read, std::size_t most) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || status.st_size <= 0 || status.st_size < read) return most;
  return std::min(most, static_cast<std::size_t>(status.st_size - read) + 1);
}

}  // namespace engram::data
