#pragma once
/// The width at which a recurrent model has as many parameters as another: how the paper made its comparisons fair.
/// [key-value-predict 1.8].

#include <cstdint>

#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// Parameters of all but the input's vectors (theta_M in the paper), and of clusters their projections; those that the
/// output shares are the input's. The options must be valid.
std::int64_t parameters_without_embedding(const RecurrentOptions& model);

struct SolvedWidth {
  std::int64_t width = 0;       ///< k
  std::int64_t parameters = 0;  ///< at this width, without the input's vectors
  std::int64_t target = 0;
};
/// The multiple of state_parts() whose number of parameters is nearest to the target, the smaller of two. The width of
/// the input's vectors stays. A target of 0 is that of an LSTM without readout which is as wide as these vectors.
/// Throws UsageError for a target that the smallest width exceeds, and for tied tables, which leave no width to choose.
SolvedWidth solve_width(const RecurrentOptions& model, std::int64_t target = 0);

}  // namespace engram
