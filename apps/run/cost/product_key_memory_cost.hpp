#pragma once
/// What product-key memories cost in arithmetic and memory traffic: [product-key 7.1]. A multiply-add is
/// 2 FLOPs; selection, softmax and norms are left out.

#include <cstdint>

#include "nn/layers/product_key_options.hpp"

namespace engram {

/// Of one memory and one token.
struct ProductKeyMemoryCost {
  double query = 0;       ///< FLOPs of the query network
  double scores = 0;      ///< of the products with sub-keys, or with all keys where they are flat
  double read = 0;        ///< of the weighted sum of values
  double output = 0;      ///< of gate and projection
  double read_bytes = 0;  ///< of values, at random places
  double flops() const { return query + scores + read + output; }
};
/// width: of the model. The query network's hidden layers count too.
ProductKeyMemoryCost product_key_memory_cost(const ProductKeyOptions& options, std::int64_t width);

/// FLOPs per token of the forward pass that all memories of a model add, less those of the feed-forward sublayers in
/// whose place they are. A backward pass takes twice as much.
double added_flops(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                   double feed_forward_flops);

/// Rows of a table that are touched by so many uses at random: N (1 - (1 - 1/N)^uses). [product-key 7.2].
double touched_rows(double slots, double uses);

}  // namespace engram
