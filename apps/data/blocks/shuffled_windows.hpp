#pragma once
/// Blocks of windows drawn from all of a text, for models that remember nothing ([product-key 6]). The text is cut into
/// N = floor((total - 1) / M) windows of M inputs, whose targets are the tokens behind them. Every epoch has all of
/// them once, in an order of its own; a block takes the next B, and may end one epoch and begin another.

#include <cstdint>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/data/files/token_view.hpp"

namespace engram::data {

/// Where `index` goes in the order of an epoch: a permutation of 0 .. count - 1 and a pure function of its arguments,
/// so that nothing is stored for it. A Feistel network over the next power of 4, followed again from where it leaves
/// the range (Black and Rogaway: "Ciphers with Arbitrary Finite Domains", 2002); orders repeat after 2^32 epochs.
std::int64_t shuffled(std::int64_t index, std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

class ShuffledWindows final : public BlockReader {
 public:
  /// B rows and windows of M tokens. The tokens must outlive the reader. Throws UsageError for B or M below 1, and for
  /// M + 1 tokens or fewer than that.
  ShuffledWindows(TokenView tokens, int rows, int block, std::uint64_t seed);

  /// Its zero_caches is always set; `first` and `stride` are 0, as the rows are from anywhere.
  void next(Block& block) override;
  const ReaderState& state() const override { return state_; }
  bool accepts(const ReaderState& state) const override;
  void restore(const ReaderState& state) override;
  /// The last tokens, which fill no window.
  std::int64_t dropped() const override { return state_.total - 1 - windows_ * state_.block; }

  std::int64_t windows() const { return windows_; }  ///< N

 private:
  TokenView tokens_;
  std::int64_t windows_;
  ReaderState state_;  // position: windows of the epoch that were handed out; wraps: epochs that are over
};

}  // namespace engram::data
