#pragma once
/// Runs launches: blocks on several OS threads, one block on one OS thread at a time.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/simulated/block.hpp"
#include "cuda/simulated/cost/launch_costs.hpp"
#include "cuda/simulated/launch_record.hpp"
#include "cuda/simulated/reservations.hpp"

namespace engram::simulated {

/// Work to be done again, and the device memory that it needs.
struct CapturedWork {
  std::function<void()> run;
  CapturedAddresses addresses;
};

class Engine {
 public:
  /// Returns when every block has run. Throws one DeviceError for the first block, in the order of the run, whose
  /// kernel made a mistake; blocks after it may not have run, and the engine is ready for the next launch. For one OS
  /// thread at a time.
  void run(const LaunchRecord& launch);

  /// Work that the host hands to the device, a launch or another: done at once, or kept while a step is captured. What
  /// it reads and writes is found by addresses among `arguments`.
  void start(std::function<void()> work, std::span<const std::byte> arguments = {});
  /// What is no work of the device, but has its place in the order: not counted.
  void start_uncounted(std::function<void()> action);
  std::int64_t started() const { return started_; }  ///< calls of start()
  std::int64_t warpgroup_products() const;           ///< of all launches
  /// From here on start() keeps the work, in order, until captured() returns it.
  void begin_capture();
  std::vector<CapturedWork> captured();
  bool capturing() const { return capturing_; }

  RunOptions options;
  LaunchCosts costs;
  Reservations reservations;

 private:
  /// Of so many OS threads.
  void make_workers(int count);
  /// Counts blocks that stand for the others; a launch like one before is not run.
  void run_sample(const LaunchRecord& launch);

  std::vector<std::unique_ptr<Block>> workers_;  // one per OS thread
  HappensBefore begun_;
  HappensBefore ended_;
  bool capturing_ = false;
  std::int64_t started_ = 0;
  std::vector<CapturedWork> captured_;
};

}  // namespace engram::simulated
