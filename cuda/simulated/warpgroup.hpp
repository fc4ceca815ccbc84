#pragma once
/// Products by a warpgroup (cuda/warpgroup.cuh): the meeting of its 128 threads, the decoding of the right operand's
/// descriptor, and the rules of shared memory that tensor cores read by themselves. PTX ISA, "Asynchronous Warpgroup
/// Level Matrix Instructions".

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/simulated/shared_memory.hpp"
#include "cuda/simulated/site.hpp"

namespace engram::simulated {

/// What one lane brings.
struct WarpgroupProduct {
  std::uint64_t right = 0;              ///< descriptor of the first step's operand
  std::uint64_t step = 0;               ///< what is added to it from step to step
  int columns = 0;                      ///< of the result: a multiple of 8
  int steps = 0;                        ///< of 16 inner places each
  bool transposed = false;              ///< numbers side by side in memory are columns, not inner places
  bool adds = false;                    ///< to the sums, or sets them
  const std::uint32_t* left = nullptr;  ///< four words a step: a Fragment (cuda/mma.cuh)
  float* sums = nullptr;                ///< columns / 2 of them: a Sums for every 16 columns

  bool agrees_with(const WarpgroupProduct& other) const {
    return right == other.right && step == other.step && columns == other.columns && steps == other.steps &&
           transposed == other.transposed && adds == other.adds;
  }
};

/// What tensor cores see of a block's dynamic shared memory: what a thread wrote as an operand, once that thread has
/// fenced it (operands_stored) and all threads have met at a barrier behind.
class OperandMemory {
 public:
  static constexpr std::size_t kUnit = 16;  // bytes

  /// Nothing of it can be seen. `threads` of the block can write.
  void begin_block(const SharedMemory& shared, std::size_t threads);
  /// Bytes from the start of the memory, multiples of kUnit. Return what is wrong; empty: nothing.
  std::string write(std::size_t thread, std::size_t at, std::size_t bytes, const Site& site);
  void fence(std::size_t thread);
  void barrier();

  /// The bf16 number at a place, as an f32, for a product. `mistake` says what is wrong, if anything is.
  float read(std::size_t at, std::string& mistake);

 private:
  enum class State : std::uint8_t { untouched, written, fenced, seen };
  struct Unit {
    State state = State::untouched;
    bool was_read = false;  // since the last barrier
  };

  const SharedMemory* shared_ = nullptr;
  std::size_t threads_ = 0;
  std::vector<Unit> units_;                        // none before the first write of a block
  std::vector<std::byte> seen_;                    // as it was at the barrier
  std::vector<std::vector<std::size_t>> written_;  // units of each thread, not fenced yet
  std::vector<std::size_t> fenced_, read_;
};

/// Its threads, while they wait for each other.
class Warpgroup {
 public:
  static constexpr int kThreads = 128;

  void begin_block() { count_ = 0; }
  /// Returns what is wrong with this call.
  std::string arrive(int thread, const Site& site, const WarpgroupProduct& product);
  bool complete() const { return count_ == kThreads; }
  /// Multiplies, into the sums of all lanes, and lets them go. Returns what is wrong with the operand.
  std::string multiply(OperandMemory& memory, const Site& site);
  const WarpgroupProduct& product() const { return *lanes_[0]; }

 private:
  std::array<const WarpgroupProduct*, kThreads> lanes_{};
  Site site_;
  int first_ = 0;
  int count_ = 0;
  std::vector<float> left_, right_;
};

}  // namespace engram::simulated
