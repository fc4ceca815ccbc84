#pragma once
/// What a Transformer-XL costs in arithmetic, by the formulas of the family's spec, section 9.1. A multiply-add is 2
/// FLOPs; softmax, norms and scores that are computed again are left out.

#include <cstdint>
#include <vector>

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

}  // namespace engram
