#pragma once
/// Everything that defines a recurrent language model with short attention, and what is refused. Daniluk et al.:
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (2017); all details in
/// docs/mathematics/key-value-predict.md.

#include <cstdint>
#include <string_view>

#include "core/names.hpp"
#include "core/rules/recurrent_cell.hpp"

namespace engram {

/// What is made of the states before the softmax ([key-value-predict 1.3 to 1.5, 1.7]).
enum class ReadoutKind : std::uint8_t {
  identity,           ///< the states themselves
  attention,          ///< attention over the last `window` states
  key_value,          ///< the same, with states cut into keys and values
  key_value_predict,  ///< into keys, values and what predicts
  n_gram,             ///< `parts` slices of states, each one position older than the one before
  recurrent_memory    ///< attention over the last `window` words. Tran et al. (2016), RM(+tM-g)
};
constexpr auto names_of(ReadoutKind) {
  return std::to_array<Named<ReadoutKind>>({{ReadoutKind::identity, "identity"},
                                            {ReadoutKind::attention, "attention"},
                                            {ReadoutKind::key_value, "key_value"},
                                            {ReadoutKind::key_value_predict, "key_value_predict"},
                                            {ReadoutKind::n_gram, "n_gram"},
                                            {ReadoutKind::recurrent_memory, "recurrent_memory"}});
}
/// What readouts see of the blocks before, in training ([key-value-predict 2]). States always cross blocks.
enum class Carry : std::uint8_t {
  detached,  ///< all that the window reaches, as constants
  none       ///< nothing: as the paper trained
};
constexpr auto names_of(Carry) {
  return std::to_array<Named<Carry>>({{Carry::detached, "detached"}, {Carry::none, "none"}});
}
/// What a window is at the start of a text ([key-value-predict 2]).
enum class MissingPositions : std::uint8_t {
  masked,  ///< as short as the text
  zero     ///< filled up with keys and values of zero that have weight too
};
constexpr auto names_of(MissingPositions) {
  return std::to_array<Named<MissingPositions>>(
      {{MissingPositions::masked, "masked"}, {MissingPositions::zero, "zero"}});
}

struct RecurrentOptions {
  std::int64_t vocabulary = 0;                  ///< V, symbols
  std::int64_t embedding_width = 0;             ///< w, numbers in a word's vector; 0: width
  std::int64_t width = 0;                       ///< k, numbers in a state; a multiple of state_parts()
  RecurrentCell encoder = RecurrentCell::lstm;  ///< one layer, whose outputs are the states
  std::int64_t order = 3;                       ///< higher-order encoders: states that they see
  double decay = 0.6;       ///< hornn_fofe: in (0, 1]; the state m positions ago is weighted by decay^m
  bool output_map = false;  ///< rnn and higher-order encoders: one more map [k, k] and tanh behind them
  ReadoutKind readout = ReadoutKind::key_value_predict;
  std::int64_t window = 5;                              ///< L, positions; attention and recurrent_memory
  std::int64_t parts = 4;                               ///< N of the N-gram RNN; 1: a projection of the state
  std::int64_t output_width = 0;                        ///< d of n_gram; 0: k / parts
  MissingPositions missing = MissingPositions::masked;  ///< attention and keys
  bool temporal_value = false;                          ///< recurrent_memory: a second table of positions, for values
  Carry carry = Carry::detached;
  bool carry_evaluation = true;     ///< evaluation carries whatever `carry` says; no key of a configuration
  double init_range = 0.1;          ///< weights start uniform in +- this, forget gates' biases at 1
  std::int64_t logits_memory = 32;  ///< MiB of logits at a time (at least one row)

  /// One encoder.
  static constexpr std::int64_t layers = 1;

  bool attends() const {
    return readout == ReadoutKind::attention || readout == ReadoutKind::key_value ||
           readout == ReadoutKind::key_value_predict;
  }
  /// n, of equal parts that a state is cut into.
  std::int64_t state_parts() const;
  /// d, numbers of what the softmax sees.
  std::int64_t hidden_width() const;
  std::int64_t vector_width() const { return embedding_width > 0 ? embedding_width : width; }
  RecurrenceOptions recurrence() const { return {.cell = encoder, .order = static_cast<int>(order), .decay = decay}; }
  /// States of the last positions that the encoder needs.
  std::int64_t encoder_reach() const { return recurrence().history(); }
  /// Positions before the present one that the readout sees.
  std::int64_t readout_reach() const;

  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
