#pragma once
/// Which order of the clusters' slots a Transformer-XL was trained with, told by a text: under the wrong one every word
/// outside of cluster 0 has the probability of another cluster.

#include <cstdint>
#include <span>

#include "apps/data/files/token_view.hpp"
#include "core/dtype.hpp"
#include "core/files/safetensors.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

struct ClusterOrderLosses {
  double natural = 0;       ///< nats per token, with the rows as they are taken as those of natural order
  double reversed = 0;      ///< and of reversed order
  std::int64_t tokens = 0;  ///< that were predicted
};

/// Of the first tokens of a text, at most 512 of them, in one stream. `sources`: the model's parameters, in `dtype`
/// (f32 or f64), with the rows of slots as they lie in their file. Both losses are equal to the bit where no token
/// tells. Throws UsageError for fewer than two tokens.
ClusterOrderLosses cluster_order_losses(ModelOptions options, std::span<const TensorSource> sources, DType dtype,
                                        data::TokenView tokens);

}  // namespace engram
