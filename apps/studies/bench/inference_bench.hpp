#pragma once
/// Models with frozen weights, timed: evaluation in blocks through key and value rings beside the forward pass of
/// training, which projects its cached states (and keys of distances) anew in every block; and generation of one text,
/// or of many side by side: reading prompts, then token by token.

#include <cstdint>
#include <vector>

#include "apps/run/cost/step_cost.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/studies/bench/bench_model.hpp"
#include "apps/studies/bench/machine_limits.hpp"

namespace engram {

/// One block length M.
struct BlockInference {
  std::int64_t block = 0;                      ///< M
  std::int64_t streams = 0;                    ///< side by side, each of which reads a block
  double cached_blocks = 0;                    ///< C / M: mean span, or memory, over block
  double forward_seconds = 0;                  ///< of a block as in training, median; 0 without rings
  double frozen_seconds = 0;                   ///< of a block through the rings, median
  double forward_flops = 0, frozen_flops = 0;  ///< per token

  double tokens_per_second() const { return static_cast<double>(block * streams) / frozen_seconds; }
  double saving() const { return 1 - frozen_seconds / forward_seconds; }
  double predicted_saving() const { return 1 - frozen_flops / forward_flops; }
};

/// Whether evaluation keeps keys and values in rings, which training does not; elsewhere it reads blocks as training's
/// forward pass does.
bool has_rings(const ModelOptions& model);

/// Texts that go on side by side, once the past of each is full.
struct GenerationRate {
  std::int64_t streams = 0;
  std::int64_t prompt = 0;    ///< tokens of a prompt's block, of every stream
  double prompt_seconds = 0;  ///< to read such a block of all streams, median
  double token_seconds = 0;   ///< for one more token of all streams, median

  double prompt_tokens_per_second() const { return static_cast<double>(streams * prompt) / prompt_seconds; }
  double tokens_per_second() const { return static_cast<double>(streams) / token_seconds; }
};

struct InferenceResult {
  double window = 0;  ///< positions that a query sees, mean over layers, heads and queries of the config's block
  std::vector<BlockInference> blocks;
  std::vector<GenerationRate> generation;  ///< of one stream, and of many
  double token_bytes = 0;                  ///< parameters, keys and values that a token of one stream must read
  double token_floor_seconds = 0;          ///< these bytes at the machine's rate
};

/// All-attention: blocks of a quarter and of a sixteenth of the mean span (C / M = 4 and 16). Transformer-XL: the
/// config's block with its own memory, then with memories of 4 and 16 blocks, as the papers evaluate with long ones.
/// All with the config's batch; `runs` timed blocks each. Generation with the config's model of 1 and of 64 streams:
/// `runs` prompts of the config's block, and `runs` times 16 tokens.
InferenceResult bench_inference(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime,
                                std::int64_t runs);

}  // namespace engram
