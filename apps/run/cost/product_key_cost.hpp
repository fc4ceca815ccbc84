#pragma once
/// What the Transformer of the paper on product-key memory costs in arithmetic and memory traffic:
/// [product-key 5.2, 7.1]. A multiply-add is 2 FLOPs; softmax, norms and scores that are computed again are left out. A
/// window is a block of tokens that is read from nothing.

#include <cstdint>

#include "apps/run/cost/step_cost.hpp"
#include "nn/models/product_key_transformer_options.hpp"

namespace engram {

/// FLOPs per token of the forward pass over windows of so many positions: per layer 8 d^2 for the four maps of
/// attention, 2 d (window + 1) for scores and values of the positions that a query sees in the mean, 4 d inner for the
/// feed-forward sublayer (16 d^2 by default); and 2 d Vc for the output.
double forward_flops(const ProductKeyTransformerOptions& model, std::int64_t window);
/// Of a training step, forward and backward.
TrainingFlops training_flops(const ProductKeyTransformerOptions& model, std::int64_t window);
/// All costs, for a bench. Generating a token reads the weights of all layers and of the output, and the rows that
/// memories find; keys and values of the window are computed anew, so none are read.
StepCost step_cost(const ProductKeyTransformerOptions& model, const StepSetting& setting);

}  // namespace engram
