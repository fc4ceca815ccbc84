#include "apps/run/cost/all_attention_cost.hpp"

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/product_key_memory_cost.hpp"
#include "apps/run/cost/table_cost.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {
namespace {

/// Every cluster with its share of the tokens.
template <class Found>
void for_each_cluster(const AllAttentionOptions& model, const std::vector<double>& shares, const Found& found) {
  const VocabularyClusters clusters(model.cutoffs, model.vocabulary, model.width);
  const std::vector<double> used = shares.empty() ? assumed_shares(model.cutoffs, model.vocabulary) : shares;
  for (std::size_t i = 0; i < clusters.count(); ++i)
    found(i, static_cast<double>(clusters[i].size), static_cast<double>(clusters[i].width), used.at(i));
}

/// FLOPs per token of the forward pass of one layer: the formulas of [all-attention 10], for every memory mode.
struct LayerCost {
  double maps = 0;               ///< linear maps
  double context = 0;            ///< per position of the mean window: content, position, value, value positions
  double past = 0;               ///< projecting cached states, per position of the mean window over the block's length
  double slots = 0;              ///< scores and values of persistent slots: 4 for every number in their keys
  double slot_exponentials = 0;  ///< not FLOPs

  explicit LayerCost(const AllAttentionOptions& model) {
    const auto width = static_cast<double>(model.width), heads = static_cast<double>(model.heads);
    const auto slot_count = static_cast<double>(model.slots), inner = static_cast<double>(model.inner);
    // Heads of slots alone have no keys and values of the context.
    const double share = static_cast<double>(model.context_heads()) / heads;
    maps = 4 * width * width * (1 + share);
    context = (model.position_values == PositionValues::none ? 6 : 8) * width * share;
    past = 4 * width * width * share;
    switch (model.memory_mode) {
      case MemoryMode::all:
      case MemoryMode::attn_split:
        slots = 4 * width * slot_count;
        slot_exponentials = heads * slot_count;
        break;
      case MemoryMode::head_split:
        slots = 4 * width * (1 - share) * slot_count;
        slot_exponentials = heads * (1 - share) * slot_count;
        break;
      case MemoryMode::single_head:
        slots = 4 * width * slot_count;
        slot_exponentials = slot_count;
        break;
      case MemoryMode::ff_attn:
        slots = 4 * width * inner;
        slot_exponentials = inner;
        break;
      case MemoryMode::transformer:
        maps += 4 * width * inner;
        break;
      case MemoryMode::none:
        break;
    }
  }
};

/// Of all product-key memories, per token of one forward pass.
double memories_of(const AllAttentionOptions& model) {
  return added_flops(model.memories, model.width, model.layers,
                     4 * static_cast<double>(model.width) * static_cast<double>(model.inner));
}

}  // namespace

double output_flops(const AllAttentionOptions& model, const std::vector<double>& cluster_shares) {
  const auto width = static_cast<double>(model.width);
  if (model.cutoffs.empty()) return 2 * width * static_cast<double>(model.vocabulary);
  double flops = 0;
  for_each_cluster(model, cluster_shares, [&](std::size_t i, double words, double cluster_width, double share) {
    const double slots = i == 0 ? static_cast<double>(model.cutoffs.size()) : 0;
    flops += (i == 0 ? 1 : share) * (2 * width * cluster_width + 2 * cluster_width * (words + slots));
  });
  return flops;
}

double output_exponentials(const AllAttentionOptions& model, const std::vector<double>& cluster_shares) {
  if (model.cutoffs.empty()) return static_cast<double>(model.vocabulary);
  auto exponentials = static_cast<double>(model.cutoffs.size());  // the clusters' slots
  for_each_cluster(model, cluster_shares, [&](std::size_t i, double words, double, double share) {
    exponentials += (i == 0 ? 1 : share) * words;
  });
  return exponentials;
}

double input_flops(const AllAttentionOptions& model, const std::vector<double>& cluster_shares) {
  double flops = 0;
  if (!model.cutoffs.empty())
    for_each_cluster(model, cluster_shares, [&](std::size_t, double, double cluster_width, double share) {
      flops += share * 2 * static_cast<double>(model.width) * cluster_width;
    });
  return flops;
}

TrainingFlops training_flops(const AllAttentionOptions& model, const CostSetting& setting) {
  const auto layers = static_cast<double>(model.layers);
  const LayerCost layer(model);
  TrainingFlops flops;
  flops.products = layers * 3 * layer.maps + 3 * memories_of(model) +
                   3 * (input_flops(model, setting.cluster_shares) + output_flops(model, setting.cluster_shares));
  flops.attention_forward = layers * (layer.context * setting.window + layer.slots);
  flops.attention_backward = 2 * flops.attention_forward;
  // Cached states are constants: the backward pass needs the weights' gradients only.
  flops.past_forward = flops.past_backward = layers * layer.past * setting.window / static_cast<double>(setting.block);
  return flops;
}

double evaluation_flops(const AllAttentionOptions& model, double window, const std::vector<double>& cluster_shares) {
  const LayerCost layer(model);
  return static_cast<double>(model.layers) * (layer.maps + layer.context * window + layer.slots) + memories_of(model) +
         input_flops(model, cluster_shares) + output_flops(model, cluster_shares);
}

double training_exponentials(const AllAttentionOptions& model, double window) {
  return 2 * static_cast<double>(model.layers) *
         (static_cast<double>(model.context_heads()) * window + LayerCost(model).slot_exponentials);
}

double training_bytes(const AllAttentionOptions& model, const CostSetting& setting, OptimizerKind optimizer,
                      std::int64_t parameters) {
  const auto width = static_cast<double>(model.width), batch = static_cast<double>(setting.batch);
  const auto block = static_cast<double>(setting.block);
  const double states = batch * (setting.window + block) * width;
  const std::int64_t depth = model.width / model.heads;
  const double layer = 2 * batch * block * width + states + 4 * states + LayerCost(model).slots / 2 +
                       static_cast<double>(model.max_span * depth) + batch * static_cast<double>(model.heads) * block;
  return kFloatBytes * 3 * static_cast<double>(model.layers) * layer + update_bytes(optimizer, parameters);
}

double generation_bytes(const AllAttentionOptions& model, double window, std::int64_t parameters) {
  return kFloatBytes * (static_cast<double>(parameters) + 2 * static_cast<double>(model.layers * model.width) * window *
                                                              static_cast<double>(model.context_heads()) /
                                                              static_cast<double>(model.heads));
}

StepCost step_cost(const AllAttentionOptions& model, const StepSetting& setting) {
  const CostSetting with{setting.window, setting.block, setting.batch};
  StepCost cost;
  cost.window = setting.window;
  cost.training = training_flops(model, with);
  cost.exponentials = training_exponentials(model, setting.window);
  cost.attention_exponentials = cost.exponentials / 2;
  cost.output_exponentials = output_exponentials(model);
  const TableSizes tables = table_sizes(model.memories, model.width, model.layers, setting.tables);
  const std::int64_t others = setting.parameters - tables.parameters();
  cost.bytes =
      training_bytes(model, with, setting.optimizer, others) +
      table_traffic(model.memories, model.width, model.layers, setting.tables, setting.batch * setting.block).bytes();
  cost.frozen_flops = evaluation_flops(model, setting.window);
  cost.forward_flops = cost.frozen_flops + cost.training.past_forward;
  cost.token_bytes = generation_bytes(model, setting.window, others);
  if (tables.memories > 0)
    cost.token_bytes +=
        static_cast<double>(tables.memories) * product_key_memory_cost(model.memories, model.width).read_bytes;
  return cost;
}

}  // namespace engram
