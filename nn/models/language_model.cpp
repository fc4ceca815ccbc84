#include "nn/models/language_model.hpp"

#include "autograd/functions/slice.hpp"

namespace engram {

Variable LanguageModel::scored(const Variable& hidden, const TokenBatch& batch) {
  if (batch.context == 0) return hidden;
  return slice(hidden, 1, batch.context, hidden.shape()[1]);
}

}  // namespace engram
