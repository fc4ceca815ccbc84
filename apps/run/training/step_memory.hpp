#pragma once
/// What a run takes of memory, known before it: the first steps of training, on a device that takes memory and computes
/// nothing (core/counting_backend.hpp). There is no second account of what layers and kernels take: they are asked.

#include <cstdint>
#include <string>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/rank_memory.hpp"
#include "core/arena.hpp"
#include "core/device.hpp"

namespace engram {

/// On what a run's memory is counted.
struct MemorySetting {
  Device device = {};        ///< it must be there: its kernels and its facts decide what is taken
  int threads = 0;           ///< of the host; 0: all. Scratch memory of the CPU's kernels grows with them
  int ranks = 1;             ///< that share a batch; the numbers are those of one
  int rank = 0;              ///< which
  DType dtype = DType::f32;  ///< of parameters; the account of what is kept (StepMemory::kept) is of f32
};

/// Bytes of one rank that trains, f32 parameters. `kept` and the next three stay from step to step. What libraries take
/// for themselves, the program, and small objects of the host come on top.
struct StepMemory {
  RankMemory kept;                     ///< parameters and what goes with them; a mean of weights as if it had begun
  std::int64_t caches = 0;             ///< what the streams of training remember of earlier blocks
  std::int64_t validation_caches = 0;  ///< what those of the short validation remember
  std::int64_t blocks = 0;             ///< tokens of a batch and their losses
  std::int64_t activations = 0;        ///< of a step: in use when backward begins, because it will need them
  std::int64_t peak = 0;               ///< of a step: the most in use at once
  std::int64_t workspace = 0;          ///< of the peak: scratch memory of the kernel that was at work, none where 0
  std::string kernel;                  ///< at work at the peak, or next
  std::int64_t first_arena = 0;        ///< what the first step takes, where there is room, as it does not know its peak
  /// What steps take it from, at least the peak: on devices that take it beforehand (takes_room) one block that the
  /// first step fits into too, else taken after the first.
  std::int64_t arena = 0;
  std::int64_t steps = 0;  ///< that were counted, until nothing grew any more

  /// All but what steps take.
  std::int64_t kept_bytes() const { return kept.total() + caches + validation_caches + blocks; }
  /// With the arena.
  std::int64_t total() const { return kept_bytes() + arena; }
};

/// Whether runs on this device take the memory of steps before the first one (first_step_memory.hpp).
inline bool takes_room(Device device) { return device.kind == DeviceKind::cpu; }
/// Gives an arena that nothing is in yet one block of so many bytes.
void take_room(Arena& arena, std::int64_t bytes);

/// How many positions of earlier blocks a model of these options keeps in training.
std::int64_t longest_past(const ModelOptions& model);

/// Counts a configuration whose vocabulary is known; training.split must be one that the ranks can share
/// (split_for_ranks). `training`: the split that blocks are read from; without tokens: words are drawn by the
/// frequencies of cluster_shares.hpp, which matters where there are clusters. Adaptive spans are as they begin. With
/// training.drawn_lengths all blocks are as long as the longest. Throws what opening the device does, and what the run
/// would throw before its first step.
StepMemory count_step_memory(const RunConfig& config, const data::ArticleSplit& training, const MemorySetting& setting);

}  // namespace engram
