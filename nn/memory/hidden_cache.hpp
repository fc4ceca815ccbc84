#pragma once
/// The last hidden states of a layer's input, from which training projects keys and values anew in every block, so that
/// the projections get gradients from the past as well. Spec of the all-attention family, section 1.3.

#include <vector>

#include "nn/memory/past.hpp"

namespace engram {

class HiddenCache final : public LayerPast {
 public:
  /// B streams of `width`. Memory comes from `allocator`, which must outlive the cache.
  HiddenCache(Backend& backend, Allocator& allocator, std::int64_t streams, std::int64_t width, DType dtype, Pad pad);

  void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
            AttentionOptions& options) override;
  /// Keeps the last span.cache_length() states of (cache, block). Call once per block, after read().
  void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values,
              const AttentionSpan& span) override;
  void reset() override;

  /// Appends all that the kernels of a block depend on, memory and arguments: a captured block may be replayed where
  /// it is the same.
  void append_state(std::vector<std::int64_t>& state, const AttentionSpan& span) const;
  /// What read() and update() do on the host, for a replayed block of so many positions.
  void replayed(std::int64_t positions, const AttentionSpan& span);
  /// Takes back the last update(), a block of so many positions, once.
  void undo(std::int64_t positions);

  /// [B, C, width]; C = 0 after reset().
  const Tensor& states() const { return states_; }
  /// How many of the states are of the stream itself; the ones before are zeros.
  std::int64_t valid() const { return valid_; }
  /// Memory for a cache of another length, zeroed, to load a checkpoint into.
  void restore(std::int64_t length, std::int64_t valid);
  /// Blocks in which a window reached farther back than the cache did (after its first filling): the missing states
  /// counted as zero vectors.
  std::int64_t shortfalls() const { return shortfalls_; }

 private:
  Tensor zeros(std::int64_t length);
  void count_shortfall(const HeadWindows& windows);
  /// Of the states: how many are of the stream itself.
  std::int64_t valid_states() const;

  Backend* backend_;
  Allocator* allocator_;
  std::int64_t streams_, width_;
  DType dtype_;
  Pad pad_;
  Tensor states_, spare_;  // a step reads one and writes the other
  std::int64_t valid_ = 0;
  std::int64_t shortfalls_ = 0;
};

/// The cache that a past is; throws Error when it is another kind of past.
HiddenCache& hidden_cache(LayerPast& past);

}  // namespace engram
