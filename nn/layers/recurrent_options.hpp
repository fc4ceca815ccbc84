#pragma once
/// Everything that defines a recurrent language model with short attention, and what is refused. Daniluk et al.:
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (2017); all details in
/// docs/mathematics/key-value-predict.md.

#include <cstdint>
#include <string_view>
#include <vector>

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
  std::int64_t layers = 1;                      ///< of the encoder, each reading what the one below makes
  std::int64_t inner_width = 0;                 ///< numbers in a state of the layers below the last; 0: width
  RecurrentCell encoder = RecurrentCell::lstm;  ///< of all layers; the last one's outputs are the states
  std::int64_t order = 3;                       ///< higher-order encoders: states that they see
  double decay = 0.6;           ///< hornn_fofe: in (0, 1]; the state m positions ago is weighted by decay^m
  bool output_map = false;      ///< rnn and higher-order encoders: one more map [k, k] and tanh behind the last layer
  std::int64_t taps = 2;        ///< qrnn: inputs that a position of the first layer sees, its own the last of them
  std::int64_t inner_taps = 0;  ///< qrnn: the same of the other layers; 0: taps
  ReadoutKind readout = ReadoutKind::key_value_predict;
  std::int64_t window = 5;                              ///< L, positions; attention and recurrent_memory
  std::int64_t parts = 4;                               ///< N of the N-gram RNN; 1: a projection of the state
  std::int64_t output_width = 0;                        ///< d of n_gram; 0: k / parts
  MissingPositions missing = MissingPositions::masked;  ///< attention and keys
  bool temporal_value = false;                          ///< recurrent_memory: a second table of positions, for values
  Carry carry = Carry::detached;
  bool carry_evaluation = true;            ///< evaluation carries whatever `carry` says; no key of a configuration
  std::vector<std::int64_t> cutoffs = {};  ///< of the vocabulary's clusters; empty: none
  std::int64_t divisor = 4;  ///< vectors of cluster i are divisor^i times shorter; 1: as long as those of cluster 0
  bool tie_tables = false;   ///< input and output share tables and projections; w is then d

  double word_dropout = 0;         ///< on the input's words: all vectors of a word in a block are dropped, or none is
  double input_dropout = 0;        ///< on the vectors of words
  double layer_dropout = 0;        ///< on what layers hand to the next one
  double output_dropout = 0;       ///< on what the softmax sees
  double weight_dropout = 0;       ///< on recurrent weights, one mask a block; of qrnn on the weights of its inputs
  bool dropout_over_time = false;  ///< the three of states drop a feature of a stream in all positions, or in none

  double init_range = 0.1;          ///< weights start uniform in +- this, forget gates' biases at 1
  std::int64_t logits_memory = 32;  ///< MiB of logits at a time (at least one row)

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
  /// Numbers that a layer reads, and that it makes. Layers are counted from 0.
  std::int64_t layer_input(std::int64_t layer) const { return layer == 0 ? vector_width() : layer_width(layer - 1); }
  std::int64_t layer_width(std::int64_t layer) const {
    return layer + 1 < layers && inner_width > 0 ? inner_width : width;
  }
  /// qrnn: inputs that a position of the layer sees.
  std::int64_t layer_taps(std::int64_t layer) const { return layer > 0 && inner_taps > 0 ? inner_taps : taps; }
  /// What a layer needs of the last positions: its states, its cells, its inputs.
  std::int64_t state_reach() const { return encoder == RecurrentCell::qrnn ? 0 : recurrence().history(); }
  bool has_cells() const { return encoder == RecurrentCell::lstm || encoder == RecurrentCell::qrnn; }
  std::int64_t input_reach(std::int64_t layer) const {
    return encoder == RecurrentCell::qrnn ? layer_taps(layer) - 1 : 0;
  }
  /// Positions before the present one that the readout sees.
  std::int64_t readout_reach() const;
  /// Positions before the present one that anything sees at once.
  std::int64_t longest_reach() const;

  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
