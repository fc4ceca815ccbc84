#pragma once
/// What launches cost, for Engine. One launch at a time.

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/launch_cost.hpp"
#include "cuda/simulated/cost/access_counter.hpp"
#include "cuda/simulated/cost/block_sample.hpp"
#include "cuda/simulated/launch_record.hpp"

namespace engram::simulated {

class LaunchCosts final : public LaunchCounter {
 public:
  void count_launches(bool wanted) override { wanted_ = wanted; }
  void sample(const LaunchSampling& sampling) override { sampling_ = sampling; }
  std::vector<LaunchCost> take() override { return std::exchange(costs_, {}); }

  bool wanted() const { return wanted_; }
  const LaunchSampling& sampling() const { return sampling_; }
  bool samples() const { return sampling_.blocks > 0; }
  /// Whether nobody would see what a launch does.
  bool idle() const { return samples() && !wanted_; }

  /// One of so many OS threads' counters, ready for the launch.
  void begin(const LaunchRecord& launch, int workers);
  AccessCounter& of_worker(int worker) { return counters_[static_cast<std::size_t>(worker)]; }
  void end(const LaunchRecord& launch);

  /// Whether a launch like this one was sampled before, whose cost is added again: with as many blocks and threads of
  /// the same kernel, and the same arguments but for addresses.
  bool add_again(const LaunchRecord& launch, const LaunchMemory& memory);
  /// The launch's, whose sampled blocks were counted.
  void add_sampled(const LaunchRecord& launch, const LaunchMemory& memory, std::span<const SampledBlock> blocks);
  /// What a library does.
  void add(LaunchCost cost) { costs_.push_back(std::move(cost)); }

 private:
  bool wanted_ = false;
  LaunchSampling sampling_;
  std::vector<AccessCounter> counters_;
  int workers_ = 0;
  std::vector<LaunchCost> costs_;
  std::map<std::string, LaunchCost> sampled_;  // by what makes launches alike
};

}  // namespace engram::simulated
