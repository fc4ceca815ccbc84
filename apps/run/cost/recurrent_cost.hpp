#pragma once
/// What a recurrent model costs in arithmetic and memory traffic: [key-value-predict 3.1]. A
/// multiply-add is 2 FLOPs; softmax, gates and tanh are left out, and counted as exponentials.

#include <vector>

#include "apps/run/cost/step_cost.hpp"
#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// FLOPs per token of a forward pass, by part. k numbers in a state, w in a vector of a word, d before the softmax.
struct RecurrentFlops {
  double encoder = 0;  ///< LSTM 8 k (w + k); RNN 2 k (w + k); of order N 2 k (w + N k), with gates N + 1 and 2 N of
                       ///< them; QRNN 6 k taps w; 2 k^2 more with output_map; the sum of all layers
  double readout = 0;  ///< products: attention 8 d^2, n_gram 2 d k, recurrent_memory 12 k^2
  double window = 0;   ///< attention 5 L d, recurrent_memory 4 L k
  double softmax = 0;  ///< 2 V d; of clusters, those that a token needs on average, with their projections
  double input = 0;    ///< projections of the clusters' vectors
  double products() const { return encoder + readout + softmax + input; }
  double total() const { return products() + window; }
};
/// `cluster_shares`: of the tokens, by cluster; empty: assumed_shares().
RecurrentFlops forward_flops(const RecurrentOptions& model, const std::vector<double>& cluster_shares = {});
/// Of a training step, forward and backward: three times the products; the window's backward pass is twice its forward
/// one.
TrainingFlops training_flops(const RecurrentOptions& model, const std::vector<double>& cluster_shares = {});
/// Exponentials (a sigmoid or a tanh is one) per token of a forward pass beside those of the softmax over the
/// vocabulary.
double forward_exponentials(const RecurrentOptions& model);
/// All costs, for a bench. A training step reads the softmax's weights twice and reads and writes their gradient once
/// for every block of logits.
StepCost step_cost(const RecurrentOptions& model, const StepSetting& setting);

}  // namespace engram
