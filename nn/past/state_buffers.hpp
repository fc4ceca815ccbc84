#pragma once
/// Two buffers of hidden states that take turns: a step reads one and writes the other. What a memory of states is made
/// of, without when it forgets and what of it is seen.

#include <cstdint>
#include <span>
#include <vector>

#include "core/step.hpp"
#include "nn/past/past_place.hpp"

namespace engram {

class StateBuffers {
 public:
  /// Makes those of the place's streams of `width`, at first without any state.
  StateBuffers(const PastPlace& place, std::int64_t width);

  const PastPlace& place() const { return place_; }
  /// [B, C, width]; C = 0 while there are none.
  const Tensor& states() const { return states_; }

  /// No states from now on. The memory stays for later ones, so that the steps after it take none.
  void clear();
  /// C = `length` states of zeros.
  void restore(std::int64_t length);
  /// Takes what the next push() of this length writes to; undo() does nothing after it.
  void settle(std::int64_t length);
  /// The last `length` of (states, block); zeros in front where both together are fewer. block: [B, M, width].
  void push(Step& step, const Tensor& block, std::int64_t length);
  /// [B, C, width], stream b being stream streams[b] of `from`, which has the same width and dtype. Both are on the
  /// same device.
  void copy_streams(const StateBuffers& from, std::span<const std::int64_t> streams);
  /// What push() does on the host, for a replayed block.
  void replayed();
  /// Takes back the last push() or replayed(), once.
  void undo();
  /// Appends where the buffers are and how long.
  void append_state(std::vector<std::int64_t>& state) const;

 private:
  /// Memory for C states.
  Tensor empty(std::int64_t length) const { return place_.empty({place_.streams, length, width_}); }
  void take_turns();

  PastPlace place_;
  std::int64_t width_;
  Tensor none_;                   // C = 0
  Tensor states_, spare_;         // a push reads one and writes the other
  Tensor parked_;                 // the other buffer, while `states_` is none_
  Tensor before_, spare_before_;  // for undo()
};

}  // namespace engram
