#pragma once
/// What the preloaded library (fault_library.cpp) is told by its environment: which call is to fail, and how.

#include <cstddef>

namespace engram::faults {

enum class Kind { write, read, flush, rename, open, map, truncate, close, memory, folder, remove, print, count };

/// What a call has to do. `fail`: errno is set. Processes that are to be killed never get an answer.
enum class Verdict { pass, fail, half, half_and_kill };

/// Of the process; made by the first call.
class Plan {
 public:
  Plan();
  /// Counts a call of this kind and says what it has to do. `name` and `about` are for the list.
  Verdict ask(Kind kind, const char* name, const char* about);
  bool lists() const { return list_ >= 0; }

 private:
  void write_down(Kind kind, const char* name, const char* about) const;

  Kind kind_ = Kind::count;  // count: no call is to fail
  long first_ = 0;
  bool later_too_ = false;
  int error_ = 0;
  Verdict verdict_ = Verdict::pass;
  bool kills_ = false;
  int list_ = -1;
};

Plan& plan();

/// Whether an allocation of so many bytes is one of the kind `memory`.
bool is_large(std::size_t bytes);

}  // namespace engram::faults
