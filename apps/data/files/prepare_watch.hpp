#pragma once
/// Hearing how far the preparation of data is.

#include <cstdint>
#include <functional>
#include <string>

namespace engram::data {

/// Called with the bytes that are done, of how many; 0: that is not known.
using ByteWatch = std::function<void(std::int64_t done, std::int64_t all)>;

struct PrepareWatch {
  /// What is being done from now on: "reading 'text'", "counting words".
  std::function<void(const std::string& what)> begin = [](const std::string&) {};
  /// How much of it has been done.
  ByteWatch at = [](std::int64_t, std::int64_t) {};
};

}  // namespace engram::data
