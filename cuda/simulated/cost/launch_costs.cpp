#include "cuda/simulated/cost/launch_costs.hpp"

#include "core/error.hpp"

namespace engram::simulated {
namespace {

LaunchCost cost_without_counts(const LaunchRecord& launch) {
  return {.place = text(launch.file, ":", launch.line),
          .function = launch.caller,
          .launches = 1,
          .most_shared_bytes = static_cast<std::int64_t>(launch.shared_bytes)};
}

}  // namespace

void LaunchCosts::begin(const LaunchRecord& launch, int workers) {
  workers_ = workers;
  if (counters_.size() < static_cast<std::size_t>(workers)) counters_.resize(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) of_worker(worker).begin_launch(launch);
}

void LaunchCosts::end(const LaunchRecord& launch) {
  LaunchCost sum = cost_without_counts(launch);
  SectorSet reads, writes;
  for (int worker = 0; worker < workers_; ++worker) {
    sum.add(of_worker(worker).cost());
    reads.insert(of_worker(worker).read_sectors());
    writes.insert(of_worker(worker).written_sectors());
  }
  sum.distinct_read_bytes = 32 * reads.count();
  sum.distinct_written_bytes = 32 * writes.count();
  costs_.push_back(std::move(sum));
}

bool LaunchCosts::add_again(const LaunchRecord& launch, const LaunchMemory& memory) {
  const auto known = sampled_.find(memory.likeness(launch));
  if (known == sampled_.end()) return false;
  LaunchCost cost = known->second;
  const LaunchCost named = cost_without_counts(launch);
  cost.place = named.place;
  cost.function = named.function;
  costs_.push_back(std::move(cost));
  return true;
}

void LaunchCosts::add_sampled(const LaunchRecord& launch, const LaunchMemory& memory,
                              std::span<const SampledBlock> blocks) {
  LaunchCost sum = cost_without_counts(launch);
  sum.add(cost_of_all(launch.block_count(), blocks));
  sampled_.emplace(memory.likeness(launch), sum);
  costs_.push_back(std::move(sum));
}

}  // namespace engram::simulated
