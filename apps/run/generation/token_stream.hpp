#pragma once
/// One text running through a model with frozen weights: tokens go in, the log-probabilities of the next token come
/// out. Keys and values of the past are kept in ring buffers, so every token is computed once; the result is that of
/// evaluating the text in blocks.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/placed_model.hpp"

namespace engram {

class TokenStream {
 public:
  /// At the start of a stream. The model's parameters must not change while the stream is in use; model and runtime
  /// must outlive it. `window`: for models that remember nothing, so many of the last tokens are read anew for every
  /// token; 0: not.
  explicit TokenStream(const PlacedModel& placed, std::int64_t window = 0);
  /// The window that a trained model needs: what training gave it to read, where it remembers nothing.
  static std::int64_t window_of(const RunConfig& config);

  /// Forgets all tokens: the start of a stream.
  void reset();
  /// Appends tokens, in [0, V), at least one; long runs are cut into blocks. Returns ln p [V] of the token that
  /// follows, valid until the next call.
  std::span<const double> append(std::span<const std::int32_t> tokens);

 private:
  void append_block(std::span<const std::int32_t> tokens);
  void append_to_window(std::span<const std::int32_t> tokens);

  static constexpr std::size_t kLongestBlock = 256;

  PlacedModel placed_;
  ModelPast past_;
  BlockTensors block_;
  std::size_t window_;              // 0: the past remembers
  std::vector<std::int32_t> last_;  // the last tokens, at most window_
  std::vector<double> log_probabilities_;
};

}  // namespace engram
