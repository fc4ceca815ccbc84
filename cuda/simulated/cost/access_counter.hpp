#pragma once
/// Counts what the blocks of one launch ask of a card; one object for each OS thread that runs blocks. Kernels tell it
/// of every access (instrumentation.cpp, counted_access.hpp), the engine of barriers and of warps that meet.
///
/// Lanes run one after the other here. Which accesses of theirs a card would make at once is told by their place in the
/// program and by how often the lane was there since all lanes of the warp last met: at a barrier of the block, or in a
/// call such as a shuffle.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/launch_cost.hpp"
#include "cuda/simulated/cost/sector_set.hpp"
#include "cuda/simulated/cost/warp_access.hpp"
#include "cuda/simulated/launch_record.hpp"
#include "cuda/simulated/shared_memory.hpp"
#include "cuda/simulated/thread.hpp"

namespace engram::simulated {

class AccessCounter {
 public:
  /// The counter of the block that this OS thread runs just now; null: nothing is counted.
  static AccessCounter*& active();

  void begin_launch(const LaunchRecord& launch);
  /// On the OS thread that runs the block.
  void begin_block(int threads, const SharedMemory& shared);
  void end_block();
  /// What was counted, without the sectors that other counters may have met as well.
  const LaunchCost& cost() const { return cost_; }
  const SectorSet& read_sectors() const { return launch_reads_; }
  const SectorSet& written_sectors() const { return launch_writes_; }

  /// Of the running thread, at the place `site` of the program.
  void access(const void* site, const void* address, std::size_t bytes, WarpAccess::Kind kind);
  /// Of the running thread: the first function that it enters is the kernel, whose parameters lie above `frame`.
  void entered(const void* frame);
  void exponential() { ++cost_.exponentials; }
  void product();  ///< of the warp, called by each lane
  /// By warpgroup `group`, of so many columns and steps of 16 inner places (cuda/simulated/warpgroup.hpp).
  void multiplied(int group, int columns, int steps);

  void barrier();
  /// `all`: they are all lanes of the warp that still run.
  void met(int warp, bool all);

 private:
  struct Region {
    std::uintptr_t begin = 0, end = 0;
    bool has(std::uintptr_t address) const { return address - begin < end - begin; }
  };
  enum class Memory : std::uint8_t { global, shared, local, unseen };
  /// The accesses of one place since the lanes met, in the order in which a lane makes them.
  struct SiteAccesses {
    std::array<std::uint32_t, 32> times{};  // that each lane was there
    std::vector<WarpAccess> accesses;
    Memory memory = Memory::global;
  };
  struct Warp {
    std::unordered_map<std::uintptr_t, SiteAccesses> sites;
    int lanes = 0;
    int products = 0;  // of single lanes
  };

  Memory memory_of(const Thread& thread, std::uintptr_t address) const;
  void note(Warp& warp, int lane, std::uintptr_t site, std::uintptr_t address, std::size_t bytes, WarpAccess::Kind kind,
            Memory memory);
  void close(Warp& warp);
  void count_global(const WarpAccess& access);
  void count_shared(const WarpAccess& access);

  LaunchCost cost_;
  SectorSet launch_reads_, launch_writes_, block_reads_;
  std::vector<Warp> warps_;
  std::size_t used_warps_ = 0;
  std::vector<std::uintptr_t> parameters_;  // of each thread: where its kernel's parameters begin; 0: not entered
  const void* kernel_ = nullptr;
  Region dynamic_shared_, static_shared_, program_;
};

/// Whether any kernel of this program was compiled to tell of its accesses (CMake's option ENGRAM_COST).
bool kernels_tell_accesses();

}  // namespace engram::simulated
