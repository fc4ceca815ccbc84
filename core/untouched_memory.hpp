#pragma once
/// Addresses without memory behind them, which the system gives a zero page where somebody reads and a page of its own
/// where somebody writes: for what is far too large to be filled and is not.

#include <cstddef>
#include <map>

namespace engram {

class UntouchedMemory {
 public:
  UntouchedMemory() = default;
  ~UntouchedMemory();
  UntouchedMemory(const UntouchedMemory&) = delete;
  UntouchedMemory& operator=(const UntouchedMemory&) = delete;

  /// Aligned to pages. Throws OutOfMemory where the system has no addresses left, or promises no more memory than it
  /// has.
  void* take(std::size_t bytes);
  /// Whether take() returned it; then it is gone.
  bool give_back(void* data) noexcept;

 private:
  std::map<void*, std::size_t> blocks_;
};

}  // namespace engram
