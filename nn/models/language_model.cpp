#include "nn/models/language_model.hpp"

#include "autograd/functions/slice.hpp"
#include "core/check.hpp"

namespace engram {

void ModelTrace::begin(std::size_t count) {
  layers.assign(count, {});
  for (AttentionTrace& layer : layers) {
    layer.keep_results = keep_results;
    layer.term = term;
  }
  memories.assign(keep_memories ? count : 0, {});
  states.clear();
}

std::pmr::vector<Variable> LanguageModel::auxiliary_losses(const ModelTrace& trace, const Variable&, const TokenBatch&,
                                                           double, double) {
  return std::pmr::vector<Variable>(trace.states.get_allocator());
}

void LanguageModel::check_tokens(const TokenBatch& batch, const ModelPast& past, std::size_t parts) {
  const Shape& shape = batch.inputs.shape();
  if (shape.rank() != 2) throw ShapeError(text("model: tokens must be [B, M], got ", shape));
  check_dtype("model", "tokens", batch.inputs, DType::i32);
  if (parts == 0 && !past.empty())
    throw Error(text("model: remembers nothing, got the past of ", past.size(), " layers"));
  if (past.size() != parts) throw Error(text("model: needs the past of ", parts, " layers, got ", past.size()));
  if (shape[1] < 1) throw ShapeError(text("model: a block must have tokens, got ", shape));
  if (!past.empty() && past.front()->streams() != shape[0])
    throw ShapeError(text("model: the past is of ", past.front()->streams(), " streams, got a block of ", shape[0],
                          "\n  other streams need a past of their own"));
  if (batch.context < 0 || batch.context >= shape[1])
    throw Error(text("model: context must be in [0, ", shape[1], "), the block's length, got ", batch.context));
  if (batch.fed_again < 0) throw Error(text("model: fed_again must be at least 0, got ", batch.fed_again));
}

Variable LanguageModel::scored(const Variable& hidden, const TokenBatch& batch) {
  if (batch.context == 0) return hidden;
  return slice(hidden, 1, batch.context, hidden.shape()[1]);
}

}  // namespace engram
