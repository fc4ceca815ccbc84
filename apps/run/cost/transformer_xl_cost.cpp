#include "apps/run/cost/transformer_xl_cost.hpp"

#include <algorithm>

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/product_key_memory_cost.hpp"
#include "apps/run/cost/table_cost.hpp"

namespace engram {
namespace {

/// Sizes as numbers, and what is the same for all ways of counting. Letters as in [transformer-xl 9.1].
struct XlSizes {
  double D, a, F, N, S, M, B, new_tokens;
  bool relative;      // sinusoids of distances, which every layer projects
  double score_maps;  // products per visible pair and number of a head: content, positions, values
  XlSizes(const TransformerXlOptions& model, const XlCostSetting& setting)
      : D(static_cast<double>(model.width)),
        a(static_cast<double>(model.heads * model.head_depth())),
        F(static_cast<double>(model.inner)),
        N(static_cast<double>(model.layers)),
        S(static_cast<double>(setting.segment)),
        M(static_cast<double>(model.memory)),
        B(static_cast<double>(setting.batch)),
        new_tokens(static_cast<double>(setting.segment - setting.extension)),
        relative(model.positions == PositionKind::relative),
        score_maps(relative || model.positions == PositionKind::shaw ? 3 : 2) {}
  /// What the output of attention and the feed-forward sublayer take per segment and stream.
  double rest() const { return 2 * S * a * D + 4 * S * D * F; }
  /// Projecting the sinusoids of all distances, a stream's share.
  double positions() const { return relative ? 2 * (M + S) * D * a / B : 0; }
  /// Whether there is a key of every distance.
  bool has_distances() const { return score_maps == 3; }
};

/// One cluster of the vocabulary, or all of it.
struct Cluster {
  double words, width, slots;        // the slots are those of the other clusters, in the first
  double input_share, output_share;  // of the tokens that it is computed for
  double projection;                 // numbers of its projection, 0 where it has none
};

std::vector<Cluster> clusters_of(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const auto width = static_cast<double>(model.width);
  const bool whole = model.divisor == 1 || model.cutoffs.empty();
  const std::vector<double> shares = model.cutoffs.empty()            ? std::vector<double>{1}
                                     : setting.cluster_shares.empty() ? assumed_shares(model.cutoffs, model.vocabulary)
                                                                      : setting.cluster_shares;
  std::vector<Cluster> clusters;
  std::int64_t first = 0, divided = model.token_width();
  for (std::size_t i = 0; i <= model.cutoffs.size(); ++i) {
    const std::int64_t end = i < model.cutoffs.size() ? model.cutoffs[i] : model.vocabulary;
    const auto own = static_cast<double>(divided);
    const bool projected = own != width || (!whole && model.project_same_width);
    clusters.push_back({.words = static_cast<double>(end - first),
                        .width = own,
                        .slots = i == 0 ? static_cast<double>(model.cutoffs.size()) : 0,
                        .input_share = shares.at(i),
                        .output_share = i == 0 ? 1 : shares.at(i),
                        .projection = projected ? width * own : 0});
    first = end;
    divided /= model.divisor;
  }
  return clusters;
}

double ends_of(const TransformerXlOptions& model, const XlCostSetting& setting) {
  double flops = 0;
  for (const Cluster& one : clusters_of(model, setting))
    flops += 2 * one.input_share * one.projection +
             2 * one.output_share * (one.projection + one.width * (one.words + one.slots));
  return flops;
}

/// Of all product-key memories, per scored token of one forward pass.
double memories_of(const TransformerXlOptions& model, const XlSizes& z) {
  return added_flops(model.memories, model.width, model.layers, 4 * z.D * z.F) * z.S / z.new_tokens;
}

/// `passes`: of what costs the same in every pass, 1 for a forward, 2 for a backward pass.
XlFlops per_token(const TransformerXlOptions& model, const XlCostSetting& setting, double layer, double passes) {
  const XlSizes size(model, setting);
  return {.layers = size.N * layer / size.new_tokens + passes * memories_of(model, size),
          .ends = passes * ends_of(model, setting)};
}

}  // namespace

double mean_keys(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const auto segment = static_cast<double>(setting.segment), memory = static_cast<double>(model.memory);
  if (model.visibility == Visibility::all) return memory + (segment + 1) / 2;
  const double window = memory + (model.visibility == Visibility::last_memory_plus_1 ? 1 : 0);
  return window;  // with the memory full every query sees a whole window
}

XlFlops forward_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const XlSizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  return per_token(
      model, setting,
      2 * z.S * z.D * z.a + 4 * (z.S + z.M) * z.D * z.a + z.positions() + 2 * z.score_maps * pairs * z.a + z.rest(), 1);
}

XlFlops backward_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const XlSizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  const double memory = (model.pre_norm ? 8 : 4) * z.M * z.D * z.a;
  return per_token(model, setting,
                   12 * z.S * z.D * z.a + memory + z.positions() + 4 * z.score_maps * pairs * z.a + 2 * z.rest(), 2);
}

XlFlops cached_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const XlSizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  return per_token(model, setting, 6 * z.S * z.D * z.a + 2 * z.score_maps * pairs * z.a + z.rest(), 1);
}

XlFlops released_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const XlSizes z(model, setting);
  const double keys = z.S + z.M;
  return per_token(model, setting,
                   6 * keys * z.D * z.a + z.positions() + 2 * z.score_maps * z.S * keys * z.a + z.rest(), 1);
}

/// Of the classifiers of auxiliary losses, forward and backward, as a mean over the training: layer l of n has them for
/// l / 2n of it.
double auxiliary_flops(const TransformerXlOptions& model) {
  const double layers = model.intermediate_losses ? static_cast<double>(model.layers - 1) / 4 : 0;
  const double heads = layers + (model.second_target > 0 ? layers + 1 : 0);
  return heads * 6 * static_cast<double>(model.width) * static_cast<double>(model.vocabulary);
}

TrainingFlops training_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const XlSizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting), layers = z.N / z.new_tokens;
  const double past = layers * 4 * z.M * z.D * z.a;
  TrainingFlops flops;
  flops.products = layers * (3 * (6 * z.S * z.D * z.a + z.rest()) + 2 * z.positions()) + 3 * ends_of(model, setting) +
                   3 * memories_of(model, z) + auxiliary_flops(model);
  flops.attention_forward = layers * 2 * z.score_maps * pairs * z.a;
  flops.attention_backward = 2 * flops.attention_forward;
  if (model.pre_norm)
    flops.products += 3 * past;
  else
    flops.past_forward = flops.past_backward = past;
  return flops;
}

double output_exponentials(const TransformerXlOptions& model, const XlCostSetting& setting) {
  double exponentials = 0;
  for (const Cluster& one : clusters_of(model, setting)) exponentials += one.output_share * (one.words + one.slots);
  return exponentials;
}

double training_bytes(const TransformerXlOptions& model, const XlCostSetting& setting, OptimizerKind optimizer,
                      std::int64_t parameters) {
  const XlSizes z(model, setting);
  const double keys = z.M + z.S;
  const double layer = z.B * (2 * z.S * z.a + keys * (z.D + 4 * z.a) + static_cast<double>(model.heads) * z.S) +
                       (z.has_distances() ? keys * z.a : 0);
  return kFloatBytes * 3 * z.N * layer + update_bytes(optimizer, parameters);
}

double generation_bytes(const TransformerXlOptions& model) {
  const XlCostSetting one_token;
  const XlSizes z(model, one_token);
  const double keys = mean_keys(model, one_token);
  // Distances above the clamp share the keys of one.
  const double distances = model.clamp > 0 ? std::min(keys, static_cast<double>(model.clamp) + 1) : keys;
  double output = 0;
  for (const Cluster& one : clusters_of(model, one_token))
    output += one.projection + one.width * (one.words + one.slots);
  return kFloatBytes *
             (z.N * (4 * z.D * z.a + 2 * z.D * z.F + 2 * keys * z.a + (z.has_distances() ? distances * z.a : 0)) +
              output) +
         added_token_bytes(model.memories, model.width, model.layers, 2 * z.D * z.F);
}

StepCost step_cost(const TransformerXlOptions& model, const StepSetting& setting) {
  const XlCostSetting with{.segment = setting.block + setting.extension,
                           .extension = setting.extension,
                           .batch = setting.batch,
                           .cluster_shares = {}};
  const XlSizes z(model, with);
  StepCost cost;
  cost.window = mean_keys(model, with);
  cost.training = training_flops(model, with);
  cost.attention_exponentials = z.N * static_cast<double>(model.heads) * cost.window * z.S / z.new_tokens;
  cost.output_exponentials = output_exponentials(model, with);
  cost.exponentials = 2 * cost.attention_exponentials + cost.output_exponentials;
  const TableSizes tables = table_sizes(model.memories, model.width, model.layers, setting.tables);
  cost.bytes =
      training_bytes(model, with, setting.optimizer, setting.parameters - tables.parameters()) +
      table_traffic(model.memories, model.width, model.layers, setting.tables, setting.batch * with.segment).bytes();
  cost.forward_flops = forward_flops(model, with).total();
  cost.frozen_flops = cached_flops(model, with).total();
  cost.token_bytes = generation_bytes(model);
  return cost;
}

}  // namespace engram
