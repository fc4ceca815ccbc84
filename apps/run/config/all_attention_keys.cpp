#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_all_attention_keys(std::vector<ConfigKey>& keys) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto model = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "model", [](auto& config) -> auto& { return config.model.all_attention; }, member, name, on_resume, meaning));
  };
  using Model = AllAttentionOptions;
  model(&Model::memory_mode, "memory_mode", kKeep,
        "where a layer keeps what it knows (docs/guide/all-attention.md, variants)");
  model(&Model::vocabulary, "vocabulary", kKeep, "symbols; 0: as many as the data have");
  model(&Model::layers, "layers", kKeep, "layers");
  model(&Model::width, "width", kKeep, "numbers in a hidden state");
  model(&Model::heads, "heads", kKeep, "heads of each layer; must divide width");
  model(&Model::inner, "inner", kKeep, "width of the feed-forward sublayer, slots of ff_attn's (those two only)");
  model(&Model::slots, "slots", kKeep, "persistent slots of each head (single_head: of all)");
  model(&Model::max_span, "max_span", kKeep, "positions that a head can look back at most");
  model(&Model::span, "span", kKeep, "how far heads look: learned, max_span, or computed per query");
  model(&Model::ramp, "ramp", kKeep, "positions: width of the soft edge of a span");
  model(&Model::span_init, "span_init", kChange, "adaptive spans at the start, as a share of max_span, 0 to 1");
  model(&Model::mask_offset, "mask_offset", kKeep, "1: the mask begins one position earlier");
  model(&Model::ramp_gradient, "ramp_gradient", kChange, "which corners of the soft edge move a span");
  model(&Model::pad, "pad", kKeep, "before a text: zero vectors, or nothing");
  model(&Model::position_values, "position_values", kKeep, "relative positions in the values too");
  model(&Model::attention_init, "attention_init", kChange,
        "matrices of attention start within 1/sqrt(width), or within sqrt(width), as the paper prints");
  model(&Model::cutoffs, "cutoffs", kKeep,
        "word ids that cut the vocabulary into clusters: adaptive input and softmax");
  model(&Model::tie_tables, "tie_tables", kKeep, "clusters: input and output share vectors");
  model(&Model::tie_projections, "tie_projections", kKeep, "clusters: and their projections");
  model(&Model::table_init, "table_init", kChange, "clusters: deviation of vectors at the start, 1 or d_i^-0.5");
  model(&Model::dropout, "dropout", kChange, "share of attention weights and feed-forward activations");
  model(&Model::embedding_dropout, "embedding_dropout", kChange, "share of embeddings and last hidden states");
  model(&Model::attention_memory, "attention_memory", kChange,
        "MiB for attention weights that are kept, not computed again; each layer has a share");
}

}  // namespace engram
