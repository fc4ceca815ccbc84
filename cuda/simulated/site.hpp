#pragma once
/// Where in a kernel's source something happens.

#include <cstring>
#include <string>

#include "core/error.hpp"

namespace engram::simulated {

struct Site {
  const char* file = "";
  int line = 0;
  const char* name = "";  ///< of the intrinsic, such as __syncthreads

  /// One place in the source; a function that was compiled several times has copies of the file's name.
  friend bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && (a.name == b.name || std::strcmp(a.name, b.name) == 0) &&
           (a.file == b.file || std::strcmp(a.file, b.file) == 0);
  }
  /// "cuda/softmax.cu:12: __syncthreads".
  std::string text() const { return engram::text(file, ":", line, ": ", name); }
};

}  // namespace engram::simulated
