#pragma once
/// What a model costs in arithmetic and memory traffic, by the formulas of [all-attention 10].
/// A multiply-add is 2 FLOPs; softmax, norms and the recomputation of scores in the backward pass are left out.

#include <cstdint>
#include <vector>

#include "apps/run/cost/step_cost.hpp"
#include "nn/models/all_attention_options.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

/// What the cost depends on beside the model's options.
struct CostSetting {
  double window = 0;       ///< mean over all layers and heads of the positions a head sees
  std::int64_t block = 1;  ///< M: the past is projected once per block
  std::int64_t batch = 1;  ///< B
  /// Clusters of the vocabulary: the share of all tokens that is in each; empty: assumed_shares().
  std::vector<double> cluster_shares = {};
};

/// FLOPs per token of the forward pass at both ends, with shares as in CostSetting. Output: the plain linear map, or
/// the head and the shares of the tails; a backward pass takes twice as much.
double output_flops(const AllAttentionOptions& model, const std::vector<double>& cluster_shares = {});
/// Input: the projections of a vocabulary in clusters; else nothing.
double input_flops(const AllAttentionOptions& model, const std::vector<double>& cluster_shares = {});
/// Exponentials per token of the softmax at the output: the whole vocabulary, or the head and the shares of the tails.
double output_exponentials(const AllAttentionOptions& model, const std::vector<double>& cluster_shares = {});

TrainingFlops training_flops(const AllAttentionOptions& model, const CostSetting& setting);
/// Per token of evaluation through key and value rings, which project no past.
double evaluation_flops(const AllAttentionOptions& model, double window,
                        const std::vector<double>& cluster_shares = {});
/// Exponentials per token of a training step, forward and backward.
double training_exponentials(const AllAttentionOptions& model, double window);
/// Bytes that a training step of B M tokens cannot avoid moving (f32): per layer queries, outputs, caches, keys,
/// values and persistent slots, forward once and backward twice; and the optimiser's pass over the parameters, which
/// are all but those of tables of values (table_cost.hpp).
double training_bytes(const AllAttentionOptions& model, const CostSetting& setting, OptimizerKind optimizer,
                      std::int64_t parameters);
/// Bytes that generating one token at batch 1 reads (f32), by [all-attention 10]: every parameter (though of the
/// embedding one row would do), and the keys and values of all spans. parameters: all but those of tables of values.
double generation_bytes(const AllAttentionOptions& model, double window, std::int64_t parameters);
/// All of these, for a bench. The setting has no extension: this family knows none.
StepCost step_cost(const AllAttentionOptions& model, const StepSetting& setting);

}  // namespace engram
