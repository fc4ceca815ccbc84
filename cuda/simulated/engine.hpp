#pragma once
/// Runs launches: blocks on several OS threads, one block on one OS thread at a time.

#include <memory>
#include <vector>

#include "cuda/simulated/block.hpp"
#include "cuda/simulated/launch_record.hpp"

namespace engram::simulated {

class Engine {
 public:
  /// Returns when every block has run. Throws one DeviceError for the first block, in the order of the run, whose
  /// kernel made a mistake; blocks after it may not have run, and the engine is ready for the next launch. For one OS
  /// thread at a time.
  void run(const LaunchRecord& launch);

  RunOptions options;

 private:
  std::vector<std::unique_ptr<Block>> workers_;  // one per OS thread
  HappensBefore begun_;
  HappensBefore ended_;
};

}  // namespace engram::simulated
