#pragma once
/// A config's model to be timed: random weights, and spans that are set to what is asked for.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/step_cost.hpp"
#include "apps/run/model/placed_model.hpp"
#include "autograd/parameter_store.hpp"
#include "core/backend.hpp"

namespace engram {

struct BenchCase {
  std::string name;
  RunConfig config;
  /// How many positions each head sees, 1 (for all heads) or H numbers, in every layer; empty: the longest span. Only
  /// the all-attention family has spans.
  std::vector<std::int64_t> spans;
};

/// Parameters in f32, of several ranks those of this one. Throws UsageError for spans that the model cannot have, and
/// without a vocabulary.
class BenchModel {
 public:
  /// What the weights are for: training has gradients beside them.
  enum class For : std::uint8_t { training, inference };
  BenchModel(const BenchCase& bench, Backend& backend, Communicator* ranks = nullptr, For use = For::training);
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;

  /// By the formulas of its family, for blocks of so many tokens, with the past full and the spans that it has: of one
  /// of so many ranks that share the batch.
  StepCost cost(std::int64_t block, int ranks = 1) const;
  /// Positions of a stream after which no step costs more than the one before.
  std::int64_t longest_past() const;

  /// The model, on the runtime's device, which must be that it was made for.
  PlacedModel placed(Runtime& runtime) const { return {*model, runtime, DType::f32}; }

  const RunConfig config;
  const std::unique_ptr<LanguageModel> model;
  ParameterStore store;
};

/// Tokens for the model: random_tokens(), or, for a vocabulary in clusters, words by their frequencies
/// (apps/run/cost/cluster_shares.hpp).
std::vector<std::int32_t> bench_tokens(std::int64_t count, const ModelOptions& model, std::uint32_t which);

/// So simple that other programs can be timed on the same tokens; `which` numbers the sequences.
std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint32_t which);

}  // namespace engram
