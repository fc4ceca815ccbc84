#pragma once
/// The tables of a model's product-key memories: how large they and their optimiser's state are, and what reading and
/// updating them moves. [product-key 2.4, 7.2]. The paper's case is f32 values under lazy Adam, which
/// moves 28 bytes for every number of a touched row: value, two moments and gradient are read, all but the gradient are
/// written.

#include <cstdint>

#include "nn/layers/product_key_options.hpp"
#include "nn/optim/table_optimizer.hpp"

namespace engram {

/// Sizes of all tables of a model; all 0 where it has no memories.
struct TableSizes {
  std::int64_t memories = 0;     ///< layers with a memory
  std::int64_t tables = 0;       ///< 1 where the memories share one
  std::int64_t rows = 0;         ///< of each table
  std::int64_t row_numbers = 0;  ///< dv
  std::int64_t value_bytes = 0;  ///< of all tables, as they are stored
  std::int64_t state_bytes = 0;  ///< of the optimiser's state for them (f32, counts of steps i32)

  std::int64_t parameters() const { return tables * rows * row_numbers; }
};
/// Bytes of the optimiser's state that a row has once,
std::int64_t table_row_state_bytes(const TableOptimizerOptions& optimizer);
/// and of what each of its numbers has.
std::int64_t table_moment_bytes(const TableOptimizerOptions& optimizer, std::int64_t row_numbers);
/// width, model_layers: of the model.
TableSizes table_sizes(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                       const TableOptimizerOptions& optimizer);

/// What a training step does with the tables, when tokens read slots at random.
struct TableTraffic {
  double touched = 0;         ///< rows of all tables that are read at least once
  double gathered_bytes = 0;  ///< of the forward pass: every read of every token
  double gradient_bytes = 0;  ///< of the backward pass, which reads every touched row once for the weights' gradients
  double update_bytes = 0;    ///< values, gradients and state of the rows that the step moves
  double bytes() const { return gathered_bytes + gradient_bytes + update_bytes; }
};
/// tokens: of a step. Deferred rows that catch up before they are read are left out.
TableTraffic table_traffic(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                           const TableOptimizerOptions& optimizer, std::int64_t tokens);

/// Bytes that all memories add to what generating one token at batch 1 reads (f32, values as they are stored), less
/// those of the feed-forward sublayers in whose place they are: keys and maps, each number once, and the rows read.
double added_token_bytes(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                         double feed_forward_parameters);

}  // namespace engram
