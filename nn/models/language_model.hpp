#pragma once
/// What all families of models have in common: tokens and a past go in, the last hidden states come out, of which
/// TokenIo makes losses and probabilities. Training, evaluation and generation know nothing else of a model.

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/layers/attention_trace.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "nn/layers/token_io.hpp"
#include "nn/module.hpp"
#include "nn/past/past.hpp"
#include "nn/past/past_place.hpp"

namespace engram {

/// Where one layer says what it did; nullptr where nobody asks.
struct LayerTrace {
  AttentionTrace* attention = nullptr;
  MemoryTrace* memory = nullptr;
};

/// What all layers did in one forward pass. Its tensors are the step's: it must go before the step ends.
struct ModelTrace {
  std::pmr::vector<AttentionTrace> layers;
  bool keep_results = false;               ///< see AttentionTrace
  std::optional<ScoreTerm> term;           ///< see AttentionTrace; only the Transformer-XL family has terms
  bool keep_memories = false;              ///< asks for `memories`
  std::pmr::vector<MemoryTrace> memories;  ///< one for each layer; without tensors where it has no product-key memory
  bool keep_states = false;                ///< asks for `states`
  std::pmr::vector<Variable> states;       ///< behind every layer, [B, M, width]
  bool keep_window_weights = false;        ///< asks for `window_weights`
  Tensor window_weights;  ///< of recurrent models with attention: [B, M, L], the newest position last; absent without

  /// `memory`: of the step, see Step::objects().
  explicit ModelTrace(std::pmr::memory_resource* memory) : layers(memory), memories(memory), states(memory) {}
  /// Makes room for so many layers, which are told what is asked for.
  void begin(std::size_t count);
  /// The part of a layer; of no trace at all, nullptr, none is asked for.
  static LayerTrace layer(ModelTrace* trace, std::size_t index) {
    if (trace == nullptr) return {};
    return {&trace->layers[index], trace->keep_memories ? &trace->memories[index] : nullptr};
  }
};

class LanguageModel : public Module {
 public:
  /// Both ends of the model: vectors of tokens, losses and probabilities of hidden states.
  TokenIo& tokens() { return *tokens_; }
  const TokenIo& tokens() const { return *tokens_; }

  /// Pasts of hidden states (StatePast), for training and for evaluation that projects the past anew, in the dtype of
  /// the step's activations. `allocator` and the model must outlive them.
  ModelPast training_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype) const {
    return make_training_past({backend, allocator, streams, dtype});
  }
  /// Pasts for frozen weights, which project nothing twice, with blocks of at most `longest_block` positions.
  ModelPast frozen_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype,
                        std::int64_t longest_block = 1) const {
    return make_frozen_past({backend, allocator, streams, dtype}, longest_block);
  }

  /// The last hidden states [B, M, width] of a block of tokens [B, M], i32 in [0, vocabulary): what tokens() makes
  /// losses and probabilities of. Updates `past`. `trace` gets what every layer did.
  virtual Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) = 0;
  /// Of hidden states [B, M, width], those that have targets: without the block's context, [B, M - context, width].
  static Variable scored(const Variable& hidden, const TokenBatch& batch);
  /// A second loss of training, by the trace of the forward pass: `weight` times what a family penalises, times
  /// `share`, 1 / number of pieces of a split batch. Absent where there is none.
  virtual Variable penalty(const ModelTrace&, double /*weight*/, double /*share*/) const { return {}; }

  /// Further losses of training, for Tape::backward as they are, of a forward pass whose trace has its states. `scored`
  /// and `row_weight` are what TokenIo::losses() gets; `progress`: the share of the training that is done.
  virtual std::pmr::vector<Variable> auxiliary_losses(const ModelTrace& trace, const Variable& scored,
                                                      const TokenBatch& batch, double row_weight, double progress);
  /// How many of them there are then; most at the beginning.
  virtual std::int64_t auxiliary_count(double /*progress*/) const { return 0; }

  /// After loading, and after every update: brings up to date what the host knows of parameters.
  virtual void refresh(Backend&) {}
  /// How many tokens back a result may depend on: what a stream must read before the tokens that it scores for them to
  /// be as in one long run. Bounded by the options, and by what refresh() and evaluation found; kWholeText where all
  /// that came before has an influence.
  virtual std::int64_t reach() const = 0;
  static constexpr std::int64_t kWholeText = std::int64_t{1} << 40;
  /// Whether results depend on how a text is cut into blocks.
  virtual bool depends_on_blocks() const { return false; }

 protected:
  explicit LanguageModel(std::unique_ptr<TokenIo> tokens) : tokens_(std::move(tokens)) {}

  /// Throws ShapeError or DTypeError for tokens that are not i32 [B, M] with M >= 1, Error for a context that leaves no
  /// target, for fewer than 0 positions that are fed again, or for a past of another number of `parts`, ShapeError for
  /// one of other streams.
  static void check_tokens(const TokenBatch& batch, const ModelPast& past, std::size_t parts);
  /// The hidden states behind `count` layers: forward(layer, x, trace) makes those behind a layer of those before it,
  /// x, within the layer's scope.
  template <class Forward>
  static Variable through_layers(std::size_t count, Variable hidden, ModelTrace* trace, const Forward& forward) {
    if (trace != nullptr) trace->begin(count);
    for (std::size_t layer = 0; layer < count; ++layer) {
      const std::string name = text("layers.", layer);
      const Scope scope(name);
      hidden = forward(layer, hidden, ModelTrace::layer(trace, layer));
      if (trace != nullptr && trace->keep_states) trace->states.push_back(hidden);
    }
    return hidden;
  }

 private:
  virtual ModelPast make_training_past(const PastPlace& place) const = 0;
  virtual ModelPast make_frozen_past(const PastPlace& place, std::int64_t longest_block) const = 0;

  std::unique_ptr<TokenIo> tokens_;
};

}  // namespace engram
