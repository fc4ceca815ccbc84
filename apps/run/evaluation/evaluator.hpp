#pragma once
/// Measures a model with frozen weights along an evaluation plan.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/run/evaluation/product_key_reads.hpp"
#include "apps/run/evaluation/work_share.hpp"
#include "apps/run/model/placed_model.hpp"

namespace engram {

/// Blocks that went through the model together.
struct TimedBlocks {
  std::int64_t inputs = 0;  ///< tokens
  double seconds = 0;
};

struct Evaluation {
  double nll_sum = 0;       ///< nats, over the scored targets
  std::int64_t scored = 0;  ///< targets
  std::int64_t inputs = 0;  ///< tokens that went through the model
  double seconds = 0;
  std::vector<TimedBlocks> blocks;  ///< all of it, in order

  double nll() const { return nll_sum / static_cast<double>(scored); }  ///< nats per token
  double bits() const;                                                  ///< per token; for characters bpc
  /// Tokens that are read a second: the median over the blocks behind the first `warm` ones, in which memory is taken
  /// and pasts fill; over all where there are no more.
  double tokens_per_second(std::size_t warm = 1) const;
};

/// Called for every scored target: its place in the split, and its loss in nats.
using TokenLoss = std::function<void(std::int64_t token, double nll)>;

/// Called for every block, or every piece of its rows (WorkShare), with the vectors that entered the softmax, [B, M',
/// width] on the device, of the positions that have targets, and the losses of those in nats, which it may change
/// before they are added up.
using BlockLosses = std::function<void(const data::Block& block, const Tensor& hidden, std::span<double> losses)>;

/// Who hears of what an evaluation finds; each may be empty, and costs nothing then. Of several ranks all hear of
/// everything, but for `change`, which is asked by the rank that computes the rows.
struct EvaluationHooks {
  TokenLoss found = {};
  ProductKeyReads reads = {};
  BlockLosses change = {};
};

/// The past for a piece of so many rows; pieces are counted from 0, which is the only one of a block that stays whole.
using PastOf = std::function<ModelPast&(std::int64_t piece, std::int64_t rows)>;

/// One pass of the plan (begin() is called first). `past` has as many streams as the plan has rows and is reset where
/// the plan says so. Where spans are dynamic their means over the pass become those of the model. Sums go in the order
/// of the tokens of each block, in double.
Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, ModelPast& past,
                    const EvaluationHooks& hooks = {});
/// evaluate() for plans whose blocks vary in rows or are cut into pieces. With several ranks it is collective, once for
/// every WorkShare::blocks_at_once() blocks, and returns the same everywhere but for the seconds.
Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, const PastOf& past_of,
                    const EvaluationHooks& hooks = {}, const WorkShare& share = {});

}  // namespace engram
