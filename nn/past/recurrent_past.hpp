#pragma once
/// What a recurrent model remembers of earlier blocks, one of these for each kind of it: the last states, the cells of
/// an LSTM, the last words. [key-value-predict 2].

#include <span>

#include "nn/past/past.hpp"
#include "nn/past/state_buffers.hpp"

namespace engram {

class RecurrentPast final : public StatePast {
 public:
  /// Makes one of the last `length` positions, vectors of `width`.
  RecurrentPast(const PastPlace& place, std::int64_t length, std::int64_t width)
      : buffers_(place, width), length_(length), width_(width) {}

  std::int64_t streams() const override { return buffers_.place().streams; }
  /// [B, 0, width] before the first block, then [B, length, width], newest last. Zeros in front where fewer were seen:
  /// so that the steps of a stream are alike.
  const Tensor& states() const override { return buffers_.states(); }
  /// Takes a block in, [B, M, width]. No gradient flows through it.
  void push(Step& step, const Tensor& block);

  /// Becomes what stream streams[b] of `from` remembers, for each own stream b: a stream may be copied to several,
  /// which then go on apart. Both are pasts of one model on one device. Throws Error when lengths, widths, dtypes or
  /// the number of streams do not fit, and for a stream that `from` has not.
  void copy_streams(const RecurrentPast& from, std::span<const std::int64_t> streams);

  void reset() override;
  std::int64_t valid() const override { return valid_; }
  void restore(std::int64_t length, std::int64_t valid) override;
  void append_state(std::vector<std::int64_t>& state) const override;
  void settle(std::int64_t) override { buffers_.settle(length_); }
  void replayed(std::int64_t positions) override;
  void undo(std::int64_t positions) override;

 private:
  StateBuffers buffers_;
  std::int64_t length_, width_;
  std::int64_t valid_ = 0;  // positions of the streams since they were reset
};

/// A past of a recurrent model. Throws Error when it is one of another family.
inline RecurrentPast& recurrent_past(LayerPast& past) {
  return past_as<RecurrentPast>(past, "a recurrent model needs recurrent pasts");
}
/// RecurrentPast::copy_streams for all that a model remembers. Throws as that does, and as recurrent_past().
void copy_streams(ModelPast& to, const ModelPast& from, std::span<const std::int64_t> streams);

}  // namespace engram
