#pragma once
/// A config's model to be timed: random weights, and spans that are set to what is asked for.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/config/run_config.hpp"
#include "autograd/parameter_store.hpp"
#include "core/backend.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

struct BenchCase {
  std::string name;
  RunConfig config;
  /// How many positions each head sees, 1 (for all heads) or H numbers, in every layer; empty: the longest span.
  std::vector<std::int64_t> spans;
};

/// Parameters in f32. Throws UsageError for spans that the model cannot have, and without a vocabulary.
class BenchModel {
 public:
  BenchModel(const BenchCase& bench, Backend& backend);
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;

  /// Positions that a head sees, over all layers and heads.
  double mean_window() const;

  const AllAttentionOptions options;
  AllAttentionModel model;
  ParameterStore store;
};

/// Tokens for the model: random_tokens(), or, for a vocabulary in clusters, words by their frequencies
/// (apps/cost/cluster_shares.hpp).
std::vector<std::int32_t> bench_tokens(std::int64_t count, const AllAttentionOptions& model, std::uint32_t which);

/// So simple that other programs can be timed on the same tokens; `which` numbers the sequences.
std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint32_t which);

}  // namespace engram
