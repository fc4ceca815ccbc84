#pragma once
/// What a bench holds times against, the same for every family: arithmetic and memory traffic of a training step, of
/// blocks with frozen weights and of one generated token. A multiply-add is 2 FLOPs; softmax, norms and the
/// recomputation of scores in the backward pass are left out. The families' formulas are in the files beside
/// this one that are named after them.

#include <cstdint>

#include "nn/optim/optimizer.hpp"

namespace engram {

inline constexpr double kFloatBytes = 4;

/// FLOPs per token, forward plus backward unless said otherwise, by the part of the step that spends them.
struct TrainingFlops {
  double products = 0;            ///< all linear maps of the new tokens, input and output included
  double attention_forward = 0;   ///< scores, positions, values, persistent slots
  double attention_backward = 0;  ///< the same without recomputed scores
  double past_forward = 0;        ///< projecting cached states to keys and values
  double past_backward = 0;       ///< gradients of these two projections
  double total() const { return products + attention_forward + attention_backward + past_forward + past_backward; }
  /// The part that depends on the spans, and the slots that share its kernel.
  double attention() const { return total() - products; }
};

/// What the cost of a step depends on beside the model's options.
struct StepSetting {
  std::int64_t block = 1;      ///< tokens of every stream that have a loss
  std::int64_t extension = 0;  ///< and tokens before them that have none
  std::int64_t batch = 1;      ///< streams
  double window = 0;           ///< mean over layers and heads of the positions a head sees, where parameters decide it
  OptimizerKind optimizer = OptimizerKind::adagrad;
  std::int64_t parameters = 0;  ///< of the whole model, tables of values too
  TableOptimizerOptions tables = {};
};

struct StepCost {
  double window = 0;                  ///< positions that a query sees, mean over layers, heads and queries
  TrainingFlops training;             ///< per token
  double attention_exponentials = 0;  ///< per token, forward; as many again backward
  double output_exponentials = 0;     ///< per token, of the softmax over the vocabulary or its clusters
  double recurrence_flops = 0;  ///< per token and pass: those of training.products that a recurrence makes step by step
  double output_flops = 0;  ///< per token: those of training.products that the softmax over a whole vocabulary makes
  double recurrence_exponentials = 0;  ///< per token, of a recurrence's forward pass
  double window_exponentials = 0;      ///< per token, of windows before a position, forward; as many again backward
  double exponentials = 0;             ///< per token of a training step, those that bound its time
  double bytes = 0;                    ///< that a training step cannot avoid moving (f32)
  double forward_flops = 0;            ///< per token, of the forward pass of training
  double frozen_flops = 0;             ///< per token, of the same with frozen weights, which projects no past
  double token_bytes = 0;              ///< that generating one token at batch 1 reads (f32)
};

/// f32 values that training keeps per parameter: value, gradient and the optimiser's state.
int values_per_parameter(OptimizerKind optimizer);
/// Bytes of an update (f32): it reads value, gradient and state, and writes value and state.
double update_bytes(OptimizerKind optimizer, std::int64_t parameters);

}  // namespace engram
