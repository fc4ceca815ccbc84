#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_recurrent_keys(std::vector<ConfigKey>& keys) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto model = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "model", [](auto& config) -> auto& { return config.model.recurrent; }, member, name, on_resume, meaning));
  };
  using Model = RecurrentOptions;
  model(&Model::vocabulary, "vocabulary", kKeep, "symbols; 0: as many as the data have");
  model(&Model::embedding_width, "embedding_width", kKeep, "numbers in a word's vector; 0: width");
  model(&Model::width, "width", kKeep, "numbers in a state of the encoder");
  model(&Model::layers, "layers", kKeep, "layers of the encoder");
  model(&Model::inner_width, "inner_width", kKeep, "numbers in a state of the layers below the last; 0: width");
  model(&Model::encoder, "encoder", kKeep, "what makes states of words (docs/guide/key-value-predict.md)");
  model(&Model::order, "order", kKeep, "higher-order encoders: earlier states that they see");
  model(&Model::decay, "decay", kKeep, "hornn_fofe: weight of the state before, and of each before that once more");
  model(&Model::output_map, "output_map", kKeep, "rnn and higher-order encoders: one more map and tanh behind them");
  model(&Model::taps, "taps", kKeep, "qrnn: inputs that a position of the first layer sees, its own among them");
  model(&Model::inner_taps, "inner_taps", kKeep, "qrnn: the same of the other layers; 0: taps");
  model(&Model::readout, "readout", kKeep, "what is made of states before the softmax");
  model(&Model::window, "window", kKeep, "positions that attention and recurrent_memory see");
  model(&Model::parts, "parts", kKeep, "n_gram: slices of a state, each read one position later");
  model(&Model::output_width, "output_width", kKeep, "n_gram: numbers before the softmax; 0: width / parts");
  model(&Model::missing, "missing", kKeep,
        "attention at the start of a text: a short window, or one filled with zeros");
  model(&Model::temporal_value, "temporal_value", kKeep, "recurrent_memory: values know positions too");
  model(&Model::carry, "carry", kChange, "what readouts see of the block before in training; evaluation sees all");
  model(&Model::cutoffs, "cutoffs", kKeep,
        "word ids that cut the vocabulary into clusters: adaptive input and softmax");
  model(&Model::divisor, "divisor", kKeep, "clusters: each has vectors so many times shorter than the one before");
  model(&Model::tie_tables, "tie_tables", kKeep,
        "input and output share vectors and projections; both are then equally wide");
  model(&Model::word_dropout, "word_dropout", kChange, "share of the input's words, each dropped wherever it occurs");
  model(&Model::input_dropout, "input_dropout", kChange, "share of the numbers of the words' vectors");
  model(&Model::layer_dropout, "layer_dropout", kChange, "share of the states that one layer hands to the next");
  model(&Model::output_dropout, "output_dropout", kChange, "share of the numbers that the softmax sees");
  model(&Model::weight_dropout, "weight_dropout", kChange,
        "share of the recurrent weights, of qrnn those of inputs; one mask for all of a block");
  model(&Model::dropout_over_time, "dropout_over_time", kChange,
        "dropout of inputs, layers and output drops a feature at all positions of a block");
  model(&Model::init_range, "init_range", kChange, "bound of uniform weights at the start");
  model(&Model::logits_memory, "logits_memory", kChange,
        "MiB of logits that the softmax holds at a time; on a card 512 unless given");
}

}  // namespace engram
