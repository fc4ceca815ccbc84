#pragma once
/// One text running through a model with frozen weights: tokens go in, the logits of the next token come out. Keys and
/// values of the past are kept in ring buffers, so every token is computed once; the result is that of evaluating the
/// text in blocks.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/allocator.hpp"
#include "core/arena.hpp"
#include "core/step.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

class TokenStream {
 public:
  /// At the start of a stream. The model's parameters must have memory on the backend, of this dtype, and must not
  /// change while the stream is in use; its spans must have been refreshed. Both must outlive the stream.
  TokenStream(AllAttentionModel& model, Backend& backend, DType dtype);

  /// Appends tokens, in [0, V), at least one; long runs are cut into blocks. Returns the logits [V] of the token that
  /// follows, valid until the next call.
  std::span<const double> append(std::span<const std::int32_t> tokens);

 private:
  void append_block(std::span<const std::int32_t> tokens);

  static constexpr std::size_t kLongestBlock = 256;

  AllAttentionModel* model_;
  Backend* backend_;
  HeapAllocator heap_;
  Arena arena_;
  Step step_;
  ModelPast past_;
  std::vector<double> logits_;
};

}  // namespace engram
