#pragma once
/// Executable definition of adaptive input and softmax, word by word: [all-attention 4] and [transformer-xl 1.1, 3].
/// Without cut-offs it is a plain softmax.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// One entry per cluster i; shapes as in [all-attention 4]. A projection that is not given is the identity.
struct AdaptiveTokens {
  std::vector<std::int64_t> cutoffs;  // c_1 .. c_K
  std::vector<Array64> tables;        // E_i [n_i, d_i] of the input
  std::vector<Array64> projections;   // P_i [d, d_i] of the input
  std::vector<Array64> out_tables;    // of the output; the same when tied
  std::vector<Array64> out_projections;
  std::vector<Array64> biases;  // b_i [n_i]
  Array64 cluster_weight;       // W_cl [K, d_0]
  Array64 cluster_bias;         // b_cl [K]
  bool natural_order = false;   // of the clusters' slots; otherwise the first tail has the last one

  /// sqrt(d) P_i E_i[w - c_i]
  std::vector<double> embedding(std::int64_t word) const;
  /// ln p of every word after the hidden state h (d numbers).
  std::vector<double> log_probabilities(const std::vector<double>& h) const;
};

}  // namespace engram::reference
