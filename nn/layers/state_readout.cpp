#include "nn/layers/state_readout.hpp"

#include <array>
#include <optional>

#include "autograd/functions/add.hpp"
#include "autograd/functions/concat.hpp"
#include "autograd/functions/delayed_slices.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/multiply.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/scale.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/functions/window_attention_additive.hpp"
#include "autograd/functions/window_attention_dot.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/past.hpp"
#include "nn/init.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// States of the past, as constants, and of the block.
Variable extended(Tape& tape, const ReadoutContext& context) {
  if (context.past_states.shape()[1] == 0) return context.states;
  return concat(std::array{tape.constant(context.past_states), context.states}, 1);
}

class Identity final : public StateReadout {
 public:
  Variable forward(Tape&, const ReadoutContext& context, Tensor*) override { return context.states; }
  void visit(Visitor&) override {}
};

/// (1) to (4), (8) to (12), (16) and (17) of the paper: states are cut into 1, 2 or 3 parts of width d.
class WindowReadout final : public StateReadout {
 public:
  explicit WindowReadout(const RecurrentOptions& options)
      : roles_(options.state_parts()),
        depth_(options.hidden_width()),
        window_(options.window),
        count_missing_(options.missing == MissingPositions::zero),
        key_({depth_, depth_}, init::uniform(options.init_range)),
        query_({depth_, depth_}, init::uniform(options.init_range)),
        score_({depth_}, init::uniform(options.init_range)),
        output_({depth_, 2 * depth_}, init::uniform(options.init_range)) {}

  Variable forward(Tape& tape, const ReadoutContext& context, Tensor* weights) override {
    const Variable all = extended(tape, context);
    // Keys come first, values second, and what predicts is the last part; all are one where there is but one.
    const std::int64_t value = roles_ == 1 ? 0 : 1, predict = roles_ - 1;
    const Variable keys = linear(part(all, 0), tape.parameter(key_));
    const Variable queries = linear(part(context.states, 0), tape.parameter(query_));
    const WindowedResult seen =
        window_attention_additive(keys, queries, tape.parameter(score_), part(all, value), context.preceding,
                                  {.window = window_, .count_missing = count_missing_});
    if (weights != nullptr) *weights = seen.weights;
    const Variable both = concat(std::array{seen.context, part(context.states, predict)}, -1);
    return tanh(linear(both, tape.parameter(output_)));
  }
  void visit(Visitor& visit) override {
    visit("key", key_);
    visit("query", query_);
    visit("score", score_);
    visit("output", output_);
  }

 private:
  Variable part(const Variable& states, std::int64_t index) const {
    return roles_ == 1 ? states : slice(states, 2, index * depth_, (index + 1) * depth_);
  }

  std::int64_t roles_, depth_, window_;
  bool count_missing_;
  Parameter key_, query_;  // W_Y, W_h: [d, d]
  Parameter score_;        // w: [d]
  Parameter output_;       // [W_r, W_x]: [d, 2 d]
};

/// (21): h* = tanh(W [h_t^1; h_{t-1}^2; ...; h_{t-N+1}^N]).
class NGramReadout final : public StateReadout {
 public:
  explicit NGramReadout(const RecurrentOptions& options)
      : parts_(options.parts), output_({options.hidden_width(), options.width}, init::uniform(options.init_range)) {}

  Variable forward(Tape& tape, const ReadoutContext& context, Tensor*) override {
    const Variable slices = delayed_slices(extended(tape, context), context.preceding, parts_);
    return tanh(linear(slices, tape.parameter(output_)));
  }
  void visit(Visitor& visit) override { visit("output", output_); }

 private:
  std::int64_t parts_;
  Parameter output_;  // [d, k]
};

/// RM(+tM-g): the temporal matrix is added to keys, and a GRU puts what was read and the state together.
class RecurrentMemoryReadout final : public StateReadout {
 public:
  explicit RecurrentMemoryReadout(const RecurrentOptions& options)
      : width_(options.width),
        window_(options.window),
        keys_({options.vocabulary, width_}, init::uniform(options.init_range)),
        values_({options.vocabulary, width_}, init::uniform(options.init_range)),
        temporal_({window_, width_}, init::uniform(options.init_range)),
        memory_({3 * width_, width_}, init::uniform(options.init_range)),
        state_({2 * width_, width_}, init::uniform(options.init_range)),
        candidate_({width_, width_}, init::uniform(options.init_range)),
        bias_({3 * width_}, init::uniform(options.init_range)) {
    if (options.temporal_value) temporal_value_.emplace(Shape{window_, width_}, init::uniform(options.init_range));
  }

  Variable forward(Tape& tape, const ReadoutContext& context, Tensor* weights) override {
    const Variable& states = context.states;
    const Tensor words = all_words(tape.step(), context);
    const WindowedResult read =
        window_attention_dot(embedding(tape.parameter(keys_), words), states, embedding(tape.parameter(values_), words),
                             tape.parameter(temporal_), temporal_value_ ? tape.parameter(*temporal_value_) : Variable(),
                             context.preceding, window_);
    if (weights != nullptr) *weights = read.weights;
    // z, q and u of the gated unit, one product each for what was read and for the state.
    const Variable of_memory = linear(read.context, tape.parameter(memory_), tape.parameter(bias_));
    const Variable of_state = linear(states, tape.parameter(state_));
    const Variable gates = sigmoid(add(slice(of_memory, 2, 0, 2 * width_), of_state));
    const Variable update = slice(gates, 2, 0, width_), keep = slice(gates, 2, width_, 2 * width_);
    const Variable candidate = tanh(
        add(slice(of_memory, 2, 2 * width_, 3 * width_), linear(multiply(keep, states), tape.parameter(candidate_))));
    return add(states, multiply(update, add(candidate, scale(states, -1))));
  }
  void visit(Visitor& visit) override {
    visit("keys", keys_);
    visit("values", values_);
    visit("temporal", temporal_);
    if (temporal_value_) visit("temporal_value", *temporal_value_);
    visit("memory", memory_);
    visit("state", state_);
    visit("candidate", candidate_);
    visit("bias", bias_);
  }

 private:
  /// [B, C + M].
  static Tensor all_words(Step& step, const ReadoutContext& context) {
    const std::int64_t streams = context.words.shape()[0], length = context.words.shape()[1];
    const std::int64_t past = context.past_words.shape()[1];
    if (past == 0) return context.words;
    Tensor all = step.empty({streams, past + length, 1}, DType::i32);
    kernels::shift_cache(step, context.past_words, context.words.view({streams, length, 1}), all);
    return all.view({streams, past + length});
  }

  std::int64_t width_, window_;
  Parameter keys_, values_;                      // M, C: [V, k]
  Parameter temporal_;                           // T: [L, k], the present word's in the last row
  std::optional<Parameter> temporal_value_;      // the same for values
  Parameter memory_, state_, candidate_, bias_;  // W_z, W_q, W_u: [3 k, k]; U_z, U_q: [2 k, k]; U_u: [k, k]; [3 k]
};

}  // namespace

std::unique_ptr<StateReadout> make_readout(const RecurrentOptions& options) {
  switch (options.readout) {
    case ReadoutKind::n_gram:
      return std::make_unique<NGramReadout>(options);
    case ReadoutKind::recurrent_memory:
      return std::make_unique<RecurrentMemoryReadout>(options);
    case ReadoutKind::identity:
      return std::make_unique<Identity>();
    default:
      return std::make_unique<WindowReadout>(options);
  }
}

}  // namespace engram
