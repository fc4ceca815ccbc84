#pragma once
/// The two ends of a language model at work without what lies between: vectors of tokens in, losses of the next tokens
/// out, forward and backward, timed.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/runtime.hpp"
#include "autograd/parameter_store.hpp"
#include "core/stopwatch.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {

class TokenEnds final : public Module {
 public:
  /// Takes memory for the weights of both ends, f32, drawn. `io`, whose weights no other store may have, and the
  /// runtime must outlive it.
  TokenEnds(TokenIo& io, Runtime& runtime);

  /// The block of the steps from here on: one stream of words.size() - 1 positions, at least 1.
  void take(std::span<const std::int32_t> words);
  /// Seconds of one step.
  double train();

  void visit(Visitor& visit) override;

 private:
  void train_once(Step& step);

  TokenIo* io_;
  Runtime* runtime_;
  ParameterStore store_;
  BlockTensors block_;
};

/// Seconds of what `action` hands to the runtime's device.
template <class Action>
double seconds_of(Runtime& runtime, const Action& action) {
  runtime.backend().synchronize();
  const Stopwatch watch;
  action();
  runtime.backend().synchronize();
  return watch.seconds();
}

}  // namespace engram
