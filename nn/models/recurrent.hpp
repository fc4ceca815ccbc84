#pragma once
/// Recurrent language models with short attention: words, an encoder, a readout, a softmax. Daniluk et al.:
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (2017); docs/mathematics/key-value-predict.md.

#include <memory>

#include "nn/layers/device_constants.hpp"
#include "nn/layers/recurrent_encoder.hpp"
#include "nn/layers/recurrent_options.hpp"
#include "nn/layers/state_dropout.hpp"
#include "nn/layers/state_readout.hpp"
#include "nn/models/language_model.hpp"
#include "nn/past/recurrent_past.hpp"

namespace engram {

/// Parameters: embedding.weight [V, w], encoder.{input, recurrent, bias} (and encoder.output, where the
/// options have output_map; without recurrent for qrnn; of several layers encoder.layers.i.*), readout.*,
/// output.weight [V, d], output.bias. With tie_tables or clusters those of TokenIo for them.
class RecurrentModel final : public LanguageModel {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit RecurrentModel(const RecurrentOptions& options);

  const RecurrentOptions& options() const { return options_; }

  /// Takes `preceding` of the batch, where texts begin anew inside streams.
  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) override;
  /// States know all of a text.
  std::int64_t reach() const override { return kWholeText; }
  bool depends_on_blocks() const override { return !options_.carry_evaluation; }

  void visit(Visitor& visit) override;

 private:
  ModelPast make_training_past(const PastPlace& place) const override;
  ModelPast make_frozen_past(const PastPlace& place, std::int64_t) const override { return make_training_past(place); }
  void check_batch(const TokenBatch& batch, const ModelPast& past) const;
  Variable embedded(Tape& tape, const TokenBatch& batch);
  /// The batch's own, or that of streams which began where their past is empty.
  const Tensor& preceding(Step& step, const TokenBatch& batch, std::int64_t seen);

  RecurrentOptions options_;
  StateDropout input_dropout_, layer_dropout_, output_dropout_;
  RecurrentEncoder encoder_;
  std::unique_ptr<StateReadout> readout_;
  DeviceConstants constants_;
};

}  // namespace engram
