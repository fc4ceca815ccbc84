#pragma once
/// What a Transformer-XL costs in arithmetic and memory traffic, by the formulas of [transformer-xl 9.1, 9.3]. A
/// multiply-add is 2 FLOPs; softmax, norms and scores that are computed again are left out.

#include <cstdint>
#include <vector>

#include "apps/run/cost/step_cost.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

struct XlCostSetting {
  std::int64_t segment = 1;                 ///< S, tokens of a stream per step
  std::int64_t extension = 0;               ///< of these, tokens in front that are read again and not scored
  std::int64_t batch = 1;                   ///< B: position projections are shared by the streams
  std::vector<double> cluster_shares = {};  ///< of the tokens, by cluster of the vocabulary; empty: assumed_shares()
};

/// Mean over the queries of a segment of the keys that they see, with the memory full.
double mean_keys(const TransformerXlOptions& model, const XlCostSetting& setting);

/// FLOPs per scored token.
struct XlFlops {
  double layers = 0;  ///< of all layers
  double ends = 0;    ///< projections of the input, and the output
  double total() const { return layers + ends; }
};
/// The forward pass of training: queries of the segment only, keys and values of memory and segment, positions
/// projected once for all streams.
XlFlops forward_flops(const TransformerXlOptions& model, const XlCostSetting& setting);
/// The backward pass; memory needs the gradients of weights only, and with pre_norm those of the norm before.
XlFlops backward_flops(const TransformerXlOptions& model, const XlCostSetting& setting);
/// The forward pass with frozen weights: keys, values and positions of the past are kept.
XlFlops cached_flops(const TransformerXlOptions& model, const XlCostSetting& setting);
/// The forward pass as the released programs do it: queries of the memory too, and no mask saves anything.
XlFlops released_flops(const TransformerXlOptions& model, const XlCostSetting& setting);

/// Classifiers of auxiliary losses, per scored token: a mean over the training, forward and backward.
double auxiliary_flops(const TransformerXlOptions& model);
/// forward_flops() and backward_flops() by the part of the step that spends them, per scored token. Positions are
/// products, with those of auxiliary losses; so is projecting a memory that has to be normalised first (pre_norm),
/// which no kernel does in one.
TrainingFlops training_flops(const TransformerXlOptions& model, const XlCostSetting& setting);
/// Exponentials per scored token of the softmax at the output: the whole vocabulary, or the first cluster with the
/// slots of the others, and the shares of these.
double output_exponentials(const TransformerXlOptions& model, const XlCostSetting& setting);
/// Bytes that a training step cannot avoid moving (f32): per layer queries, outputs, memory and segment, keys, values,
/// keys of positions and the rows' statistics, forward once and backward twice; and the optimiser's pass over the
/// parameters, which are all but those of tables of values (table_cost.hpp).
double training_bytes(const TransformerXlOptions& model, const XlCostSetting& setting, OptimizerKind optimizer,
                      std::int64_t parameters);
/// Bytes that generating one token at batch 1 reads (f32), by [transformer-xl 9.3]: the weights of layers and output,
/// keys, values and keys of positions of all that it sees, and the rows that memories find.
double generation_bytes(const TransformerXlOptions& model);
/// All of these, for a bench. The setting's window is not used: the options say what a query sees.
StepCost step_cost(const TransformerXlOptions& model, const StepSetting& setting);

}  // namespace engram
