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
  model(&Model::encoder, "encoder", kKeep, "what makes states of words (docs/guide/key-value-predict.md)");
  model(&Model::order, "order", kKeep, "higher-order encoders: earlier states that they see");
  model(&Model::decay, "decay", kKeep, "hornn_fofe: weight of the state before, and of each before that once more");
  model(&Model::output_map, "output_map", kKeep, "rnn and higher-order encoders: one more map and tanh behind them");
  model(&Model::readout, "readout", kKeep, "what is made of states before the softmax");
  model(&Model::window, "window", kKeep, "positions that attention and recurrent_memory see");
  model(&Model::parts, "parts", kKeep, "n_gram: slices of a state, each read one position later");
  model(&Model::output_width, "output_width", kKeep, "n_gram: numbers before the softmax; 0: width / parts");
  model(&Model::missing, "missing", kKeep,
        "attention at the start of a text: a short window, or one filled with zeros");
  model(&Model::temporal_value, "temporal_value", kKeep, "recurrent_memory: values know positions too");
  model(&Model::carry, "carry", kChange, "what readouts see of the block before in training; evaluation sees all");
  model(&Model::init_range, "init_range", kChange, "bound of uniform weights at the start");
  model(&Model::logits_memory, "logits_memory", kChange, "MiB of logits that the softmax holds at a time");
}

}  // namespace engram
