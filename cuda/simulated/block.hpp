#pragma once
/// Runs the threads of one block as fibers on the OS thread that calls. A thread runs until it waits or returns; then
/// the next one that can run goes on, in an order that is a function of the launch and the options alone.

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cuda/simulated/async_copies.hpp"
#include "cuda/simulated/launch_record.hpp"
#include "cuda/simulated/shared_memory.hpp"
#include "cuda/simulated/stacks.hpp"
#include "cuda/simulated/thread.hpp"
#include "cuda/simulated/warp.hpp"
#include "cuda/simulated/warpgroup.hpp"

namespace engram::simulated {

class AccessCounter;

class Block {
 public:
  Block() = default;
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Those that come are counted by it; null: by nobody.
  void count_with(AccessCounter* counter) { counter_ = counter; }
  /// Runs block number `block` to its end. Returns what went wrong, or nothing; what a mistake leaves suspended is
  /// forgotten. The threads come after `begun`'s release and release `ended`. Throws DeviceError without memory.
  std::string run(const LaunchRecord& launch, std::int64_t block, const RunOptions& options, HappensBefore& begun,
                  HappensBefore& ended);

  // What kernels call, through cuda/simulated/intrinsics.hpp, on the fiber of `self`.

  /// Waits for all threads that have not exited.
  void barrier(Thread& self, const Site& site);
  /// Whether the lanes' other accesses before a collective come before those after it. Only __syncwarp promises that.
  enum class Memory : bool { not_ordered, ordered };
  /// Waits for the lanes of `mask`; `value` is what they can read of this one. Call leave() when done reading.
  Meeting& meet(Thread& self, const Site& site, std::uint32_t mask, std::uint64_t value, Memory memory);
  void leave(Thread& self, Meeting& meeting) { warp_of(self).leave(meeting, self.lane()); }
  /// Waits for the 128 threads of the warpgroup, which multiply together.
  void multiply(Thread& self, const Site& site, const WarpgroupProduct& product);
  /// What the thread wrote for such products, inside the dynamic shared memory; and that it wrote all.
  void operand_written(Thread& self, const Site& site, const void* data, std::size_t bytes);
  /// Copies from global into the dynamic shared memory that go on by themselves, and the wait for the thread's own.
  void begin_copy(Thread& self, const AsyncCopies::Copy& copy);
  void finish_copies(Thread& self);
  void operands_stored(Thread& self) { operands_.fence(static_cast<std::size_t>(self.number)); }
  /// Ends the launch with "launch: MISTAKE" and the place of `self`. The fiber is never continued, so what its frames
  /// hold is never destroyed: the caller may hold no memory but the mistake.
  [[noreturn]] void fail(const Thread& self, std::string&& mistake);
  void fail_unless_empty(const Thread& self, std::string&& mistake) {
    if (!mistake.empty()) fail(self, std::move(mistake));
  }
  /// Products by warpgroups of all blocks so far.
  std::int64_t warpgroup_products() const { return warpgroup_products_; }
  std::byte* shared_memory() const { return shared_.data(); }
  std::size_t shared_bytes() const { return shared_.bytes(); }

  Warp& warp_of(const Thread& thread) { return warps_[static_cast<std::size_t>(thread.number / kWarpSize)]; }

 private:
  static void entry();
  void begin(std::int64_t block, const RunOptions& options);
  std::string run_kernel() const;
  std::string barrier_mistake(const Thread& self, const Site& site) const;
  void exit(Thread& self);
  void make_ready(Thread& thread);
  Thread* next_ready();
  void suspend(Thread& self);
  void open_barrier();

  AccessCounter* counter_ = nullptr;
  const LaunchRecord* launch_ = nullptr;  // null: fibers only leave, for the destructor
  HappensBefore* begun_ = nullptr;
  HappensBefore* ended_ = nullptr;
  // Blocks use the same memory one after the other. Two objects: a thread that ended must not seem ordered before one
  // that begins in the same block.
  HappensBefore block_begun_;
  HappensBefore block_ended_;
  std::array<HappensBefore, 2> barrier_orders_;
  unsigned barriers_ = 0;

  Stacks stacks_;
  SharedMemory shared_;
  Fiber caller_;
  std::deque<Thread> threads_;  // as many as the largest block needed: fibers cannot be moved
  std::deque<Warp> warps_;
  std::deque<Warpgroup> warpgroups_;
  OperandMemory operands_;
  AsyncCopies copies_;
  std::int64_t warpgroup_products_ = 0;
  int count_ = 0;  // threads of this block
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> lane_order_;  // the same, warp by warp
  std::vector<int> ready_;                // a ring: every thread is in it at most once
  std::size_t ready_begin_ = 0, ready_count_ = 0;
  int exited_ = 0;
  int at_barrier_ = 0;
  const Thread* first_at_barrier_ = nullptr;
  bool failed_ = false;
  std::string failure_;
};

}  // namespace engram::simulated
