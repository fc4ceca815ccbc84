#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_product_key_keys(std::vector<ConfigKey>& keys) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto model = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "model", [](auto& config) -> auto& { return config.model.product_key; }, member, name, on_resume, meaning));
  };
  using Model = ProductKeyTransformerOptions;
  model(&Model::vocabulary, "vocabulary", kKeep, "symbols; 0: as many as the data have");
  model(&Model::layers, "layers", kKeep, "layers");
  model(&Model::width, "width", kKeep, "numbers in a hidden state");
  model(&Model::heads, "heads", kKeep, "heads of each layer; must divide width");
  model(&Model::inner, "inner", kKeep, "width of the feed-forward sublayers; 0: 4 times width");
  model(&Model::activation, "activation", kKeep, "of the feed-forward sublayers");
  model(&Model::position_rows, "position_rows", kKeep, "learned positions; no block may be longer");
  model(&Model::pre_norm, "pre_norm", kKeep,
        "layer norms before the sublayers and at the end, not after the residuals");
  model(&Model::dropout, "dropout", kChange, "share of embeddings and of what sublayers give");
  model(&Model::attention_dropout, "attention_dropout", kChange, "share of attention weights");
  model(&Model::norm_epsilon, "norm_epsilon", kChange, "added to the variance by layer norms");
  model(&Model::attention_memory, "attention_memory", kChange,
        "MiB for attention weights that are kept, not computed again; each layer has a share");
}

}  // namespace engram
