#include "apps/run/weights/adaptive_span_names.hpp"

#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "nn/layers/memory_mode.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {
namespace {

constexpr std::string_view kMaskSpans = "._mask.current_val", kMaskBuffer = "._mask.mask_template";

class AdaptiveSpanLayout {
 public:
  explicit AdaptiveSpanLayout(const AllAttentionOptions& options) : options_(options) {}

  std::vector<AdaptiveSpanTensor> tensors() {
    tokens();
    add("key_pe", {1, depth(), options_.max_span}, "position_keys", AdaptiveSpanView::positions);
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) this->layer(layer);
    return std::move(tensors_);
  }

 private:
  std::int64_t depth() const { return options_.width / options_.heads; }
  void add(std::string name, const Shape& shape, std::string parameter,
           AdaptiveSpanView view = AdaptiveSpanView::same) {
    tensors_.push_back({{std::move(name), shape}, std::move(parameter), view});
  }
  void copy(std::string name, const Shape& shape, std::string of) {
    tensors_.push_back({{std::move(name), shape, std::move(of)}, ""});
  }
  /// A tensor of the output that may be one of the input.
  void add_output(bool tied, std::string name, const Shape& shape, std::string of, std::string parameter) {
    if (tied)
      copy(std::move(name), shape, std::move(of));
    else
      add(std::move(name), shape, std::move(parameter));
  }

  void tokens();
  void layer(std::int64_t number);

  const AllAttentionOptions& options_;
  std::vector<AdaptiveSpanTensor> tensors_;
};

void AdaptiveSpanLayout::tokens() {
  const std::int64_t width = options_.width;
  if (options_.cutoffs.empty()) {
    add("in_emb.weight", {options_.vocabulary, width}, "embedding.weight");
    add("out_emb.weight", {options_.vocabulary, width}, "output.weight");
    add("out_emb.bias", {options_.vocabulary}, "output.bias");
    return;
  }
  const VocabularyClusters clusters(options_.cutoffs, options_.vocabulary, width);
  const auto tails = static_cast<std::int64_t>(clusters.tails());
  add("out_emb.cluster_proj.weight", {tails, width}, "output.cluster_head.weight");
  add("out_emb.cluster_proj.bias", {tails}, "output.cluster_head.bias");
  for (std::size_t i = 0; i < clusters.count(); ++i) {
    const Shape table{clusters[i].size, clusters[i].width}, projection{width, clusters[i].width};
    const std::string input = text("embedding.clusters.", i, "."), output = text("output.clusters.", i, ".");
    const std::string in_table = text("in_emb.emb_layers.", i, ".weight"), in_projection = text("in_emb.emb_projs.", i);
    add(in_table, table, input + "table");
    add(in_projection, projection, input + "projection");
    add(text("out_emb.out_layers.", i, ".bias"), {clusters[i].size}, output + "bias");
    add_output(options_.tie_tables, text("out_emb.out_layers.", i, ".weight"), table, in_table, output + "table");
    add_output(options_.tie_projections, text("out_emb.out_projs.", i), projection, in_projection,
               output + "projection");
  }
}

void AdaptiveSpanLayout::layer(std::int64_t number) {
  const std::int64_t width = options_.width, heads = options_.heads, slots = options_.slots;
  const std::string from = text("layers.", number, ".");
  const std::string& to = from;
  const auto linear = [&](const char* name, const char* parameter) {
    add(from + "attn." + name + ".weight", {width, width}, to + "attention." + parameter);
  };
  const auto norm = [&](const char* name, const char* parameter) {
    add(from + name + ".weight", {width}, to + parameter + ".gain");
    add(from + name + ".bias", {width}, to + parameter + ".bias");
  };
  linear("proj_query", "query");
  linear("proj_key", "key");
  linear("proj_val", "value");
  linear("proj_out", "output");
  const std::string span = from + "attn.attn.adaptive_span._mask.current_val",
                    memory = from + "attn.attn.persistent_memory.";
  if (options_.span == SpanKind::adaptive) add(span, {heads, 1, 1}, to + "attention.span", AdaptiveSpanView::spans);
  norm("norm1", "attention_norm");
  if (options_.memory_mode == MemoryMode::all) {
    add(memory + "key", {heads, depth(), slots}, to + "attention.persistent_keys", AdaptiveSpanView::keys);
    add(memory + "val", {heads, slots, depth()}, to + "attention.persistent_values");
    // The slots hold the layer's spans too.
    if (options_.span == SpanKind::adaptive) copy(memory + "adaptive_span._mask.current_val", {heads, 1, 1}, span);
    return;
  }
  add(from + "ff.fc1.weight", {options_.inner, width}, to + "feed_forward.inner.weight");
  add(from + "ff.fc1.bias", {options_.inner}, to + "feed_forward.inner.bias");
  add(from + "ff.fc2.weight", {width, options_.inner}, to + "feed_forward.outer.weight");
  add(from + "ff.fc2.bias", {width}, to + "feed_forward.outer.bias");
  norm("norm2", "feed_forward_norm");
}

}  // namespace

std::vector<AdaptiveSpanTensor> adaptive_span_tensors(const AllAttentionOptions& options) {
  return AdaptiveSpanLayout(options).tensors();
}

bool is_adaptive_span_buffer(const std::string& name) { return name.ends_with(kMaskBuffer); }

std::string adaptive_span_buffer(const std::string& name) {
  if (!name.ends_with(kMaskSpans)) return {};
  return name.substr(0, name.size() - kMaskSpans.size()) + std::string(kMaskBuffer);
}

ForeignTensor seen_as(AdaptiveSpanView view, const ForeignTensor& stored) {
  switch (view) {
    case AdaptiveSpanView::same:
      return stored;
    case AdaptiveSpanView::spans:
      return stored.with_axes({0});
    case AdaptiveSpanView::positions:
      return stored.reversed(2).with_axes({2, 1});
    case AdaptiveSpanView::keys:
      return stored.with_axes({0, 2, 1});
  }
  throw Error("import: a tensor must be seen in a way that there is");
}

ForeignTensor stored_as(AdaptiveSpanView view, const ForeignTensor& parameter) {
  switch (view) {
    case AdaptiveSpanView::same:
    case AdaptiveSpanView::spans:
      return parameter;
    case AdaptiveSpanView::positions:
      return parameter.reversed(0).with_axes({1, 0});
    case AdaptiveSpanView::keys:
      return parameter.with_axes({0, 2, 1});
  }
  throw Error("export: a tensor must be stored in a way that there is");
}

}  // namespace engram
