#pragma once
/// One text running through a model with frozen weights: tokens go in, the logits of the next token come out. Keys and
/// values of the past are kept in ring buffers, so every token is computed once; the result is that of evaluating the
/// text in blocks.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/training/runtime.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

class TokenStream {
 public:
  /// At the start of a stream. The model's parameters must have memory on the runtime's device, of this dtype, and must
  /// not change while the stream is in use; its spans must have been refreshed. Both must outlive the stream.
  TokenStream(AllAttentionModel& model, Runtime& runtime, DType dtype);

  /// Appends tokens, in [0, V), at least one; long runs are cut into blocks. Returns the logits [V] of the token that
  /// follows, valid until the next call.
  std::span<const double> append(std::span<const std::int32_t> tokens);

 private:
  void append_block(std::span<const std::int32_t> tokens);

  static constexpr std::size_t kLongestBlock = 256;

  AllAttentionModel* model_;
  Runtime* runtime_;
  ModelPast past_;
  std::vector<double> logits_;
};

}  // namespace engram
