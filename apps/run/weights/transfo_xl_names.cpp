#include "apps/run/weights/transfo_xl_names.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {
namespace {

using Names = std::vector<std::string>;

class Layout {
 public:
  Layout(const TransformerXlOptions& options, ClusterOrder file_order)
      : options_(options), reverses_slots_(options.cutoffs.size() >= 2 && options.cluster_order != file_order) {}

  std::vector<TransfoXlTensor> tensors() {
    input();
    if (options_.tie_position_biases) {
      add("transformer.r_w_bias", head_biases(), {"position_biases.content"});
      add("transformer.r_r_bias", head_biases(), {"position_biases.position"});
    }
    for (std::int64_t n = 0; n < options_.layers; ++n) layer(n);
    output();
    return std::move(tensors_);
  }

 private:
  void add(std::string name, Shape shape, Names parameters) {
    tensors_.push_back({std::move(name), shape, std::move(parameters), ""});
  }
  void add_copy(std::string name, Shape shape, std::string of) {
    tensors_.push_back({std::move(name), shape, {}, std::move(of)});
  }

  Shape head_biases() const { return {options_.heads, options_.head_depth()}; }
  bool one_table() const { return options_.divisor == 1 || options_.cutoffs.empty(); }
  bool projected() const { return !one_table() || options_.token_width() != options_.width; }
  std::int64_t clusters() const { return static_cast<std::int64_t>(options_.cutoffs.size()) + 1; }
  /// Words and width of a cluster.
  Shape table_shape(std::int64_t cluster) const {
    if (one_table()) return {options_.vocabulary, options_.token_width()};
    const VocabularyClusters all(options_.cutoffs, options_.vocabulary, options_.token_width(), options_.divisor);
    const VocabularyClusters::Cluster& own = all[static_cast<std::size_t>(cluster)];
    return {own.size, own.width};
  }
  Shape projection_shape(std::int64_t cluster) const { return {options_.width, table_shape(cluster)[1]}; }
  bool tied_projection(std::int64_t cluster) const {
    return options_.tie_projections && std::ranges::count(options_.untied_projections, cluster) == 0;
  }

  void input() {
    for (std::int64_t b = 0; b < (one_table() ? 1 : clusters()); ++b) {
      const std::string part = one_table() ? "embedding." : text("embedding.clusters.", b, ".");
      add(text("transformer.word_emb.emb_layers.", b, ".weight"), table_shape(b), {part + "table"});
      if (projected()) add(text("transformer.word_emb.emb_projs.", b), projection_shape(b), {part + "projection"});
    }
  }

  void layer(std::int64_t n) {
    const std::string to = text("transformer.layers.", n, "."), from = text("layers.", n, ".");
    const std::string attention = from + "attention.";
    const std::int64_t width = options_.width, inner = options_.inner, all = options_.heads * options_.head_depth();
    add(to + "dec_attn.qkv_net.weight", {3 * all, width},
        {attention + "query", attention + "key", attention + "value"});
    add(to + "dec_attn.r_net.weight", {all, width}, {attention + "position"});
    add(to + "dec_attn.o_net.weight", {width, all}, {attention + "output"});
    if (options_.tie_position_biases) {
      add_copy(to + "dec_attn.r_w_bias", head_biases(), "transformer.r_w_bias");
      add_copy(to + "dec_attn.r_r_bias", head_biases(), "transformer.r_r_bias");
    } else {
      add(to + "dec_attn.r_w_bias", head_biases(), {attention + "content_bias"});
      add(to + "dec_attn.r_r_bias", head_biases(), {attention + "position_bias"});
    }
    add(to + "dec_attn.layer_norm.weight", {width}, {from + "attention_norm.gain"});
    add(to + "dec_attn.layer_norm.bias", {width}, {from + "attention_norm.bias"});
    add(to + "pos_ff.CoreNet.0.weight", {inner, width}, {from + "feed_forward.inner.weight"});
    add(to + "pos_ff.CoreNet.0.bias", {inner}, {from + "feed_forward.inner.bias"});
    add(to + "pos_ff.CoreNet.3.weight", {width, inner}, {from + "feed_forward.outer.weight"});
    add(to + "pos_ff.CoreNet.3.bias", {width}, {from + "feed_forward.outer.bias"});
    add(to + "pos_ff.layer_norm.weight", {width}, {from + "feed_forward_norm.gain"});
    add(to + "pos_ff.layer_norm.bias", {width}, {from + "feed_forward_norm.bias"});
  }

  /// The output's own parameters of this name: of one cluster, of all of them, or of a vocabulary without clusters.
  Names output_parameters(std::int64_t cluster, const std::string& name) const {
    if (options_.cutoffs.empty()) return {"output." + name};
    if (!one_table()) return {text("output.clusters.", cluster, ".", name)};
    Names all;
    for (std::int64_t b = 0; b < clusters(); ++b) all.push_back(text("output.clusters.", b, ".", name));
    return all;
  }

  void output() {
    if (!options_.cutoffs.empty()) {
      add("crit.cluster_weight", {clusters() - 1, options_.token_width()}, {"output.cluster_head.weight"});
      tensors_.back().rows_reversed = reverses_slots_;
      add("crit.cluster_bias", {clusters() - 1}, {"output.cluster_head.bias"});
      tensors_.back().rows_reversed = reverses_slots_;
    }
    for (std::int64_t b = 0; b < (one_table() ? 1 : clusters()); ++b) {
      const std::string name = text("crit.out_layers.", b, ".");
      if (options_.tie_tables)
        add_copy(name + "weight", table_shape(b), text("transformer.word_emb.emb_layers.", b, ".weight"));
      else
        add(name + "weight", table_shape(b), output_parameters(b, "table"));
      add(name + "bias", {table_shape(b)[0]}, output_parameters(b, "bias"));
    }
    // Of one table too each cluster has a projection of its own, as far as they are not tied.
    for (std::int64_t b = 0; projected() && b < clusters(); ++b) {
      const std::string name = text("crit.out_projs.", b);
      if (tied_projection(b))
        add_copy(name, projection_shape(b), text("transformer.word_emb.emb_projs.", one_table() ? 0 : b));
      else if (options_.cutoffs.empty())
        add(name, projection_shape(b), {"output.projection"});
      else
        add(name, projection_shape(b), {text("output.clusters.", b, ".projection")});
    }
  }

  const TransformerXlOptions& options_;
  bool reverses_slots_;
  std::vector<TransfoXlTensor> tensors_;
};

/// An option that the layout or its class does not have.
struct Obstacle {
  std::string what;     ///< "model.positions must be relative, got shaw", and why
  std::string setting;  ///< with which the model is written all the same; empty: it cannot be
};

std::vector<Obstacle> obstacles_of_weights(const TransformerXlOptions& options) {
  std::vector<Obstacle> found;
  if (options.positions != PositionKind::relative)
    found.push_back(
        {text("model.positions must be ", name_of(PositionKind::relative), ", got ", name_of(options.positions)), ""});
  if (!options.cutoffs.empty() && options.divisor > 1 && !options.project_same_width &&
      options.token_width() == options.width)
    found.push_back({"model.project_same_width must be true, got false: every cluster has a projection there", ""});
  const std::string one = ": that class has one output, behind the last layer";
  if (options.intermediate_losses) found.push_back({"model.intermediate_losses must be false, got true" + one, ""});
  if (options.second_target > 0)
    found.push_back({text("model.second_target must be 0, got ", options.second_target, one), ""});
  const std::string none = ": that class has no memories that are looked up";
  if (options.memories.count > 0)
    found.push_back({text("product_key.count must be 0, got ", options.memories.count, none), ""});
  if (!options.memories.layers.empty()) {
    std::string layers;
    for (const std::int64_t layer : options.memories.layers) layers += text(layers.empty() ? "" : ", ", layer);
    found.push_back({text("product_key.layers must be [], got [", layers, "]", none), ""});
  }
  return found;
}

std::vector<Obstacle> obstacles_of_original(const TransformerXlOptions& options) {
  std::vector<Obstacle> found;
  if (!options.tie_position_biases)
    found.push_back({"model.tie_position_biases must be true, got false: layers of that program share theirs", ""});
  if (options.memory > 0 && options.memory_start != MemoryStart::empty)
    found.push_back({text("model.memory_start must be ", name_of(MemoryStart::empty), ", got ",
                          name_of(options.memory_start), ": that program begins with an empty memory"),
                     "model.memory_start=empty"});
  return found;
}

std::vector<Obstacle> obstacles_of_context(const TransformerXlOptions& options, TransfoXlProgram program) {
  std::vector<Obstacle> found;
  if (program == TransfoXlProgram::original)
    found = obstacles_of_original(options);
  else if (options.memory > 0 && options.memory_start != MemoryStart::zeros)
    found.push_back(
        {text("model.memory_start must be ", name_of(MemoryStart::zeros), ", got ", name_of(options.memory_start),
              ": that class begins with a memory of zero vectors, which shows until others have taken their places"),
         "model.memory_start=zeros"});
  if (options.visibility == Visibility::last_memory_plus_1)
    found.push_back({text("model.visibility must be all or last_memory, got ", name_of(options.visibility),
                          ": it sees one position less"),
                     "model.visibility=last_memory"});
  return found;
}

void refuse_obstacles(const std::vector<Obstacle>& obstacles) {
  if (obstacles.empty()) return;
  std::string message = text("transfo-xl: the layout must have a place for all of the model, got ", obstacles.size(),
                             obstacles.size() == 1 ? " option" : " options", " that it has none for");
  std::string settings;
  bool can_be_set = true;
  for (const Obstacle& obstacle : obstacles) {
    message += "\n  " + obstacle.what;
    settings += " --set " + obstacle.setting;
    can_be_set = can_be_set && !obstacle.setting.empty();
  }
  message += can_be_set ? "\n  a model that is trained so can be exported; this one can with" + settings +
                              ", which changes its probabilities"
                        : "\n  only a model that is trained so can be exported";
  throw UsageError(message);
}

}  // namespace

void require_transfo_xl(const TransformerXlOptions& options) {
  options.check();
  refuse_obstacles(obstacles_of_weights(options));
}

void require_transfo_xl_class(const TransformerXlOptions& options, TransfoXlProgram program) {
  options.check();
  std::vector<Obstacle> all = obstacles_of_weights(options);
  for (Obstacle& obstacle : obstacles_of_context(options, program)) all.push_back(std::move(obstacle));
  refuse_obstacles(all);
}

std::vector<TransfoXlTensor> transfo_xl_tensors(const TransformerXlOptions& options, ClusterOrder file_order) {
  require_transfo_xl(options);
  return Layout(options, file_order).tensors();
}

}  // namespace engram
