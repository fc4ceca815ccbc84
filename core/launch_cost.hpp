#pragma once
/// What kernels ask of a card, counted while they run: the accesses of warps (32 neighbouring threads, the *lanes*,
/// that a card runs together) to memory, and the instructions that have units of their own. Counts are exact; they say
/// nothing of latency, caches or the order in which a card would work.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/backend.hpp"

namespace engram {

/// Accesses to global memory. A request is one instruction of a warp. Memory is moved in sectors of 32 bytes.
struct GlobalAccessCost {
  std::int64_t requests = 0;
  std::int64_t lanes = 0;       ///< that took part; at most 32 a request
  std::int64_t bytes = 0;       ///< that the lanes asked for
  std::int64_t used_bytes = 0;  ///< the same, each byte once a request
  std::int64_t sectors = 0;     ///< that the requests touch

  void add(const GlobalAccessCost& other) {
    requests += other.requests;
    lanes += other.lanes;
    bytes += other.bytes;
    used_bytes += other.used_bytes;
    sectors += other.sectors;
  }
};

/// Accesses to shared memory, which has 32 banks: bank b holds the words of 4 bytes whose number modulo 32 is b. A
/// wavefront serves one word of each bank, to any number of lanes.
struct SharedAccessCost {
  std::int64_t requests = 0;
  std::int64_t lanes = 0;
  std::int64_t bytes = 0;
  std::int64_t wavefronts = 0;
  std::int64_t least_wavefronts = 0;  ///< the same without conflicts: 1, of 8 or 16 bytes a lane up to 2 or 4

  void add(const SharedAccessCost& other) {
    requests += other.requests;
    lanes += other.lanes;
    bytes += other.bytes;
    wavefronts += other.wavefronts;
    least_wavefronts += other.least_wavefronts;
  }
};

namespace detail {
inline double cost_ratio(std::int64_t part, std::int64_t whole, double otherwise) {
  return whole == 0 ? otherwise : static_cast<double>(part) / static_cast<double>(whole);
}
}  // namespace detail

/// Of one launch, or of several of the same place in the source together.
struct LaunchCost {
  /// Of the call of launch(), "cuda/softmax.cu:52"; or "product" and "sort", a library's, and "copy", the device's own.
  std::string place;
  std::string function;  ///< that calls launch()
  std::int64_t launches = 0;
  std::int64_t blocks = 0;             ///< of all launches
  std::int64_t warps = 0;              ///< of all launches
  std::int64_t most_shared_bytes = 0;  ///< dynamic shared memory of a block

  GlobalAccessCost reads, writes;
  SharedAccessCost shared_reads, shared_writes;
  std::int64_t atomics = 0;  ///< requests, which are among the writes

  /// Each sector once a launch: what the memory must move however large the caches are.
  std::int64_t distinct_read_bytes = 0, distinct_written_bytes = 0;
  /// Sectors read, each once a block, and all that are written: what the L2 cache must move if each block finds again
  /// whatever it has read.
  std::int64_t l2_bytes = 0;
  std::int64_t local_bytes = 0;  ///< of arrays on a thread's stack

  std::int64_t barriers = 0;      ///< a warp's, at __syncthreads
  std::int64_t collectives = 0;   ///< a warp's: shuffles, votes, __syncwarp
  std::int64_t mma = 0;           ///< a warp's products of 16x8 with 16 inner places
  std::int64_t exponentials = 0;  ///< a lane's, of exp, exp2 and tanh
  /// A warp's, of all kinds, by whoever knows what nvcc made of the kernel; 0: not known.
  double instructions = 0;
  double product_flops = 0;       ///< of a library's products of f32 or f64 matrices
  double bf16_product_flops = 0;  ///< of bf16 matrices

  void add(const LaunchCost& other) {
    launches += other.launches;
    blocks += other.blocks;
    warps += other.warps;
    most_shared_bytes = std::max(most_shared_bytes, other.most_shared_bytes);
    reads.add(other.reads);
    writes.add(other.writes);
    shared_reads.add(other.shared_reads);
    shared_writes.add(other.shared_writes);
    atomics += other.atomics;
    distinct_read_bytes += other.distinct_read_bytes;
    distinct_written_bytes += other.distinct_written_bytes;
    l2_bytes += other.l2_bytes;
    local_bytes += other.local_bytes;
    barriers += other.barriers;
    collectives += other.collectives;
    mma += other.mma;
    exponentials += other.exponentials;
    instructions += other.instructions;
    product_flops += other.product_flops;
    bf16_product_flops += other.bf16_product_flops;
  }
  std::int64_t memory_bytes() const { return distinct_read_bytes + distinct_written_bytes; }
  /// Warp-wide accesses to memory, of any kind but the stack's.
  std::int64_t requests() const {
    return reads.requests + writes.requests + shared_reads.requests + shared_writes.requests;
  }
  /// The mean share of a warp's 32 lanes that its accesses have; 1 where there are none.
  double active_share() const {
    return detail::cost_ratio(reads.lanes + writes.lanes + shared_reads.lanes + shared_writes.lanes, 32 * requests(),
                              1);
  }
  /// Bytes that are of use in the sectors that were touched, as a share; 1 where none were.
  double coalescing() const {
    return detail::cost_ratio(reads.used_bytes + writes.used_bytes, 32 * (reads.sectors + writes.sectors), 1);
  }
  /// Wavefronts of a request to shared memory, and what they would be without conflicts; 0 where there is none.
  double wavefronts_per_request() const {
    return detail::cost_ratio(shared_reads.wavefronts + shared_writes.wavefronts,
                              shared_reads.requests + shared_writes.requests, 0);
  }
  double least_wavefronts_per_request() const {
    return detail::cost_ratio(shared_reads.least_wavefronts + shared_writes.least_wavefronts,
                              shared_reads.requests + shared_writes.requests, 0);
  }
};

/// How much of a step runs, so that one of any size can be counted.
struct LaunchSampling {
  /// Of each launch, spread evenly; the others are taken to be like those. Memory is taken as addresses, products of
  /// libraries are random numbers, and nothing runs while nothing is counted: results mean nothing. 0: all blocks.
  int blocks = 0;
  bool whole = false;  ///< all blocks for now, whose results later launches take for places in memory
};

/// A device that counts. Belongs to the backend.
class LaunchCounter {
 public:
  virtual ~LaunchCounter() = default;
  /// For what is reserved, copied and launched from now on. A device that cannot leaves nothing out.
  virtual void sample(const LaunchSampling&) {}
  /// From now on every launch is counted, which makes it many times slower; or no longer.
  virtual void count_launches(bool wanted) = 0;
  /// What was counted since the last call, in the order of the launches; one entry each.
  virtual std::vector<LaunchCost> take() = 0;
};

/// Filled, when the program starts, by the one device that can count, as slots of kernels are: gives nullptr for
/// backends of other devices, and where kernels were compiled without what it needs.
inline LaunchCounter* (*find_launch_counter)(Backend& backend) = nullptr;

inline LaunchCounter* launch_counter(Backend& backend) {
  return find_launch_counter == nullptr ? nullptr : find_launch_counter(backend);
}

}  // namespace engram
