#pragma once
/// What happens to the gradients of every tensor: their norms, how often they are clipped, and what moves the spans.
/// [all-attention 9].

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "autograd/parameter_store.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

class GradientReport {
 public:
  /// All must outlive the report.
  GradientReport(const RunConfig& config, const ParameterStore& store) : config_(&config), store_(&store) {}

  /// After every update.
  void add(const Optimizer& optimizer, Backend& backend);
  /// Of the updates since the last call:
  ///   steps, clip
  ///   tensors: name, norm (mean), largest, clipped (share of the steps; under global clipping the same for all)
  ///   spans, of the last update: layer, and per head task and penalty, derivatives of the loss by zeta. Only where
  ///   spans are adaptive: those of queries mix both in their weights. Frozen ones are left out.
  nlohmann::json take(Backend& backend);

 private:
  struct Tensor {
    double norm_sum = 0, largest = 0;
    std::int64_t clipped = 0;
  };

  nlohmann::json spans(Backend& backend) const;

  const RunConfig* config_;
  const ParameterStore* store_;
  std::vector<Tensor> tensors_;  // in the order of the groups and their parameters
  std::int64_t steps_ = 0;
};

}  // namespace engram
