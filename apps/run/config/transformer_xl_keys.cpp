#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_transformer_xl_keys(std::vector<ConfigKey>& keys) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto model = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "model", [](auto& config) -> auto& { return config.model.transformer_xl; }, member, name, on_resume, meaning));
  };
  using Model = TransformerXlOptions;
  model(&Model::vocabulary, "vocabulary", kKeep, "symbols; 0: as many as the data have");
  model(&Model::layers, "layers", kKeep, "layers");
  model(&Model::width, "width", kKeep, "numbers in a hidden state");
  model(&Model::heads, "heads", kKeep, "heads of each layer");
  model(&Model::depth, "depth", kKeep, "numbers of a head; 0: width / heads");
  model(&Model::inner, "inner", kKeep, "width of the feed-forward sublayer");
  model(&Model::positions, "positions", kKeep, "how attention knows positions (docs/guide/transformer-xl.md)");
  model(&Model::shaw_terms, "shaw_terms", kKeep,
        "positions shaw: the paper's two terms, or the released program's four");
  model(&Model::position_rows, "position_rows", kKeep,
        "learned positions: shaw, distances told apart; absolute_learned, tokens of a block with its extension");
  model(&Model::tie_position_biases, "tie_position_biases", kKeep, "all layers share u and v");
  model(&Model::pre_norm, "pre_norm", kKeep, "layer norms before the sublayers, not after the residuals");
  model(&Model::intermediate_losses, "intermediate_losses", kKeep,
        "training: layers but the last predict too, layer l of n until l / 2n of it");
  model(&Model::second_target, "second_target", kKeep,
        "training: weight of the loss of the token after the next, at every layer that predicts; 0: none");
  model(&Model::memory, "memory", kChange, "positions that every layer remembers of earlier segments");
  model(&Model::visibility, "visibility", kChange,
        "what a query sees: all there is, or as many positions as memory has");
  model(&Model::memory_start, "memory_start", kChange, "at the start of a text: nothing, or zero vectors");
  model(&Model::clamp, "clamp", kChange, "distances above it count as it; 0 or -1: no clamp");
  model(&Model::embedding_width, "embedding_width", kKeep, "numbers in a vector of the table; 0: width");
  model(&Model::cutoffs, "cutoffs", kKeep,
        "word ids that cut the vocabulary into clusters: adaptive input and softmax");
  model(&Model::divisor, "divisor", kKeep, "clusters: each has vectors so many times shorter than the one before");
  model(&Model::cluster_order, "cluster_order", kKeep, "clusters: order of their slots in the first softmax");
  model(&Model::tie_tables, "tie_tables", kKeep, "input and output share vectors");
  model(&Model::tie_projections, "tie_projections", kKeep, "and their projections");
  model(&Model::untied_projections, "untied_projections", kKeep,
        "clusters (0: also the plain table) whose projections are not shared");
  model(&Model::project_same_width, "project_same_width", kKeep, "clusters: project vectors of the model's width too");
  model(&Model::dropout, "dropout", kChange, "share of everything but attention weights");
  model(&Model::attention_dropout, "attention_dropout", kChange, "share of attention weights");
  model(&Model::dropout_over_time, "dropout_over_time", kChange,
        "dropout drops a feature at all positions of a segment");
  model(&Model::word_dropout, "word_dropout", kChange, "share of the input's words, each dropped wherever it occurs");
  model(&Model::norm_epsilon, "norm_epsilon", kChange, "added to the variance by layer norms");
  model(&Model::init, "init", kChange, "distribution of weights at the start");
  model(&Model::init_deviation, "init_deviation", kChange, "of normal weights at the start");
  model(&Model::init_range, "init_range", kChange, "bound of uniform weights at the start");
  model(&Model::embedding_init, "embedding_init", kChange, "of the table of vectors: as weights, or its own");
  model(&Model::embedding_init_range, "embedding_init_range", kChange, "bound of a table of its own that is uniform");
  model(&Model::projection_init_deviation, "projection_init_deviation", kChange, "of the clusters' projections");
  model(&Model::norm_init_deviation, "norm_init_deviation", kChange, "of the gains of layer norms, around 1");
  model(&Model::attention_memory, "attention_memory", kChange,
        "MiB for attention weights that are kept, not computed again; each layer has a share");
}

}  // namespace engram
