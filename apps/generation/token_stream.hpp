#pragma once
/// One text running through a model with frozen weights: tokens go in, the log-probabilities of the next token come
/// out. Keys and values of the past are kept in ring buffers, so every token is computed once; the result is that of
/// evaluating the text in blocks.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/training/block_tensors.hpp"
#include "apps/training/runtime.hpp"
#include "nn/models/language_model.hpp"

namespace engram {

class TokenStream {
 public:
  /// At the start of a stream. The model's parameters must have memory on the runtime's device, of this dtype, and must
  /// not change while the stream is in use; its spans must have been refreshed. Both must outlive the stream.
  TokenStream(LanguageModel& model, Runtime& runtime, DType dtype);

  /// Appends tokens, in [0, V), at least one; long runs are cut into blocks. Returns ln p [V] of the token that
  /// follows, valid until the next call.
  std::span<const double> append(std::span<const std::int32_t> tokens);

 private:
  void append_block(std::span<const std::int32_t> tokens);

  static constexpr std::size_t kLongestBlock = 256;

  LanguageModel* model_;
  Runtime* runtime_;
  ModelPast past_;
  BlockTensors block_;
  std::vector<double> log_probabilities_;
};

}  // namespace engram
