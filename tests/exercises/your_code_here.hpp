#pragma once
/// What stands where a learner's code shall stand.

namespace engram::exercises {

/// Thrown by your_code_here(): where it was called. The file as the compiler was given it.
struct NotWritten {
  const char* file;
  int line;
};

/// Take the call away, and write what the comment above it asks for. Until then the check says where it is.
[[noreturn]] inline void your_code_here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  throw NotWritten{file, line};
}

}  // namespace engram::exercises
