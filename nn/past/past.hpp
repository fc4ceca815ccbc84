#pragma once
/// What a model remembers of the positions before the present block. A layer of attention is written once against
/// AttentionPast; training keeps hidden states (StatePast), evaluation with frozen weights keeps keys and values.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "autograd/functions/attention.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/names.hpp"

namespace engram {

/// What positions before the start of a stream are.
enum class Pad : std::uint8_t {
  attend_zero,  ///< zero vectors that take part in the softmax, as in the released models (default)
  mask          ///< not there: weight 0
};
constexpr auto names_of(Pad) {
  return std::to_array<Named<Pad>>({{Pad::attend_zero, "attend_zero"}, {Pad::mask, "mask"}});
}

/// One thing that is remembered: of a layer, or of another part of a model.
class LayerPast {
 public:
  virtual ~LayerPast() = default;
  /// Forgets everything: the start of a stream.
  virtual void reset() = 0;
  /// Number of streams, B.
  virtual std::int64_t streams() const = 0;
  /// Positions of the stream that it has seen since its start.
  virtual std::int64_t valid() const = 0;
};

/// What a layer of attention asks of its past.
class AttentionPast {
 public:
  virtual ~AttentionPast() = default;
  /// Fills the past keys and values (and what goes with them) for one attention call. The weights are the layer's
  /// projections, [width, width].
  virtual void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
                    AttentionOptions& options) = 0;
  /// Takes the block in: hidden: [B, M, width]; keys, values: [B, M, heads depth]. No gradient flows through it.
  virtual void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values) = 0;
};

/// The pasts of all parts for one set of streams. Training, validation and every piece of a split batch have their
/// own.
using ModelPast = std::vector<std::unique_ptr<LayerPast>>;

/// A past of hidden states, as training keeps it: it can be written into checkpoints, taken back by a block, and told
/// about blocks that the device repeated by itself.
class StatePast : public LayerPast {
 public:
  /// [B, C, width]; C = 0 while there are none. States beyond the valid() ones are padding, and come first.
  virtual const Tensor& states() const = 0;
  /// Memory for a past of another length, zeroed, to load a checkpoint into.
  virtual void restore(std::int64_t length, std::int64_t valid) = 0;
  /// Takes the memory that a block of so many positions will be written to, so that the block itself takes none. What
  /// the last update() did can no longer be taken back.
  virtual void settle(std::int64_t positions) = 0;
  /// Appends all that the kernels of a block depend on, memory and arguments: a captured block may be replayed where
  /// it is the same.
  virtual void append_state(std::vector<std::int64_t>& state) const = 0;
  /// What read() and update() do on the host, for a replayed block of so many positions.
  virtual void replayed(std::int64_t positions) = 0;
  /// Takes back the last update(), a block of so many positions, once.
  virtual void undo(std::int64_t positions) = 0;
  /// Blocks that would have needed states which were no longer there, and took what Pad puts there instead.
  virtual std::int64_t shortfalls() const { return 0; }
};

/// A past as the kind that its reader needs, by `rule`. Throws Error "past: <rule>, got another past".
template <class Kind>
Kind& past_as(LayerPast& past, std::string_view rule) {
  if (auto* const found = dynamic_cast<Kind*>(&past)) return *found;
  throw Error(text("past: ", rule, ", got another past"));
}
/// A past of training. Throws Error when it is another kind of past.
inline StatePast& state_past(LayerPast& past) { return past_as<StatePast>(past, "training must have hidden states"); }
/// A past of a layer of attention. Throws Error when it is another kind of past.
inline AttentionPast& attention_past(LayerPast& past) {
  return past_as<AttentionPast>(past, "attention must have keys and values of the past");
}

}  // namespace engram
