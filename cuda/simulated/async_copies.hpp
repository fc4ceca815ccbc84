#pragma once
/// Copies from global into shared memory that threads of a block have begun and not waited for (cuda/async_copy.cuh). A
/// card may copy at any time from the beginning to the wait. Here it is the wait, and until then the target is NaN: so
/// reading too early gives NaN, and so does a target that others still read when the copy begins.

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/simulated/shared_memory.hpp"
#include "cuda/simulated/site.hpp"

namespace engram::simulated {

class AsyncCopies {
 public:
  static constexpr std::size_t kBytes = 16;  // of one copy

  struct Copy {
    void* to;
    const void* from;
    bool or_zeros = false;  ///< where `from` is null
    bool operand = false;   ///< the target is one of a product by a warpgroup
    Site site{};
  };

  /// None is under way. `threads` of the block can begin some.
  void begin_block(const SharedMemory& shared, std::size_t threads);
  /// Return what is wrong with a copy; empty: nothing.
  std::string begin(std::size_t thread, const Copy& copy);
  std::string finish(const Copy& copy);
  /// Of a thread that ends.
  std::string exit(std::size_t thread) const;
  /// Those that a thread has begun, in their order; the caller finishes and forgets them.
  std::vector<Copy>& of(std::size_t thread) { return copies_[thread]; }

 private:
  const SharedMemory* shared_ = nullptr;
  std::vector<std::vector<Copy>> copies_;
  std::vector<bool> under_way_;  // of each 16 bytes of the memory
};

}  // namespace engram::simulated
