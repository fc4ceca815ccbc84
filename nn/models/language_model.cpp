#include "nn/models/language_model.hpp"

#include "autograd/functions/slice.hpp"

namespace engram {

void ModelTrace::begin(std::size_t count) {
  layers.assign(count, {});
  for (AttentionTrace& layer : layers) {
    layer.keep_results = keep_results;
    layer.term = term;
  }
  memories.assign(keep_memories ? count : 0, {});
}

Variable LanguageModel::scored(const Variable& hidden, const TokenBatch& batch) {
  if (batch.context == 0) return hidden;
  return slice(hidden, 1, batch.context, hidden.shape()[1]);
}

}  // namespace engram
