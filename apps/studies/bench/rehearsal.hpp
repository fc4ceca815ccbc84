#pragma once
/// A trainer at work, with random tokens in the place of data and a learning rate of 0.

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/run/training/trainer.hpp"
#include "apps/studies/bench/bench_model.hpp"

namespace engram {

class Rehearsal {
 public:
  /// The runtime must outlive it. Throws UsageError as BenchModel does.
  Rehearsal(const BenchCase& bench, Runtime& runtime);

  /// Until no step costs more than the one before.
  void fill_caches();
  /// Seconds of `steps` steps, ascending. `observer` sees their kernels; nullptr: nobody does.
  std::vector<double> train(std::int64_t steps, KernelObserver* observer, bool replay);

  StepCost cost() const { return rehearsed_.cost(config_.training.block, runtime_.ranks().size()); }
  std::int64_t parameters() const { return rehearsed_.store.count(); }
  std::size_t arena_bytes() const { return runtime_.arena().peak_bytes(); }
  std::size_t parameter_bytes() const { return rehearsed_.store.bytes_in_use(); }
  ExchangeCosts exchange_costs() const { return trainer_->exchange_costs(); }
  ExchangeCosts gather_costs() const { return trainer_->gather_costs(); }

 private:
  RunConfig config_;
  Runtime& runtime_;
  BenchModel rehearsed_;
  std::unique_ptr<Trainer> trainer_;
  data::Block block_;
};

}  // namespace engram
