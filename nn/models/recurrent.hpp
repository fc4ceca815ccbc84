#pragma once
/// Recurrent language models with short attention: words, an encoder, a readout, a softmax. Daniluk et al.:
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (2017); docs/mathematics/key-value-predict.md.

#include <memory>

#include "nn/layers/position_constants.hpp"
#include "nn/layers/recurrent_encoder.hpp"
#include "nn/layers/state_readout.hpp"
#include "nn/models/language_model.hpp"
#include "nn/past/recurrent_past.hpp"

namespace engram {

/// Parameters: embedding.weight [V, w], encoder.{input, recurrent, bias} (and encoder.output, where the
/// options have output_map), readout.*, output.weight [V, d], output.bias.
class RecurrentModel final : public LanguageModel {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit RecurrentModel(const RecurrentOptions& options);

  const RecurrentOptions& options() const { return options_; }

  /// Of the last states, of an LSTM's cells, and for recurrent_memory of the last words, in this order.
  ModelPast training_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype) const override;
  ModelPast frozen_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype,
                        std::int64_t longest_block) const override;

  /// Takes `preceding` of the batch, where texts begin anew inside streams.
  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) override;
  TokenIo& tokens() override { return *tokens_; }
  const TokenIo& tokens() const override { return *tokens_; }
  /// States know all of a text.
  std::int64_t reach() const override { return kWholeText; }
  bool depends_on_blocks() const override { return !options_.carry_evaluation; }

  void visit(Visitor& visit) override;

 private:
  void check_batch(const TokenBatch& batch, const ModelPast& past) const;
  /// The batch's own, or that of streams which began where their past is empty.
  const Tensor& preceding(Step& step, const TokenBatch& batch, std::int64_t seen);

  RecurrentOptions options_;
  std::unique_ptr<TokenIo> tokens_;
  RecurrentEncoder encoder_;
  std::unique_ptr<StateReadout> readout_;
  PositionConstants constants_;
};

}  // namespace engram
