#include "apps/cost/transformer_xl_cost.hpp"

#include <algorithm>

#include "apps/cost/cluster_shares.hpp"

namespace engram {
namespace {

/// Sizes as numbers, and what is the same for all ways of counting. Letters as in the spec.
struct Sizes {
  double D, a, F, N, S, M, B, new_tokens;
  bool relative;      // sinusoids of distances, which every layer projects
  double score_maps;  // products per visible pair and number of a head: content, positions, values
  Sizes(const TransformerXlOptions& model, const XlCostSetting& setting)
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
};

double ends_of(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const auto width = static_cast<double>(model.width);
  const auto table_width = static_cast<double>(model.token_width());
  const auto projected = [&](double cluster_width) {
    const bool whole = model.divisor == 1 || model.cutoffs.empty();
    return cluster_width != width || (!whole && model.project_same_width) ? 2 * width * cluster_width : 0.0;
  };
  if (model.cutoffs.empty())
    return 2 * projected(table_width) + 2 * table_width * static_cast<double>(model.vocabulary);
  const std::vector<double> shares =
      setting.cluster_shares.empty() ? assumed_shares(model.cutoffs, model.vocabulary) : setting.cluster_shares;
  double flops = 0;
  std::int64_t first = 0, divided = model.token_width();
  for (std::size_t i = 0; i <= model.cutoffs.size(); ++i) {
    const std::int64_t end = i < model.cutoffs.size() ? model.cutoffs[i] : model.vocabulary;
    const auto words = static_cast<double>(end - first), cluster_width = static_cast<double>(divided);
    const double slots = i == 0 ? static_cast<double>(model.cutoffs.size()) : 0;
    const double input = shares.at(i) * projected(cluster_width);
    flops += input + (i == 0 ? 1 : shares.at(i)) * (projected(cluster_width) + 2 * cluster_width * (words + slots));
    first = end;
    divided /= model.divisor;
  }
  return flops;
}

XlFlops per_token(const TransformerXlOptions& model, const XlCostSetting& setting, double layer, double ends) {
  const Sizes size(model, setting);
  return {.layers = size.N * layer / size.new_tokens, .ends = ends * ends_of(model, setting)};
}

}  // namespace

double mean_keys(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const auto segment = static_cast<double>(setting.segment), memory = static_cast<double>(model.memory);
  if (model.visibility == Visibility::all) return memory + (segment + 1) / 2;
  const double window = memory + (model.visibility == Visibility::last_memory_plus_1 ? 1 : 0);
  return window;  // with the memory full every query sees a whole window
}

XlFlops forward_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const Sizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  const double positions = z.relative ? 2 * (z.M + z.S) * z.D * z.a / z.B : 0;
  return per_token(
      model, setting,
      2 * z.S * z.D * z.a + 4 * (z.S + z.M) * z.D * z.a + positions + 2 * z.score_maps * pairs * z.a + z.rest(), 1);
}

XlFlops backward_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const Sizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  const double positions = z.relative ? 2 * (z.M + z.S) * z.D * z.a / z.B : 0;
  const double memory = (model.pre_norm ? 8 : 4) * z.M * z.D * z.a;
  return per_token(model, setting,
                   12 * z.S * z.D * z.a + memory + positions + 4 * z.score_maps * pairs * z.a + 2 * z.rest(), 2);
}

XlFlops cached_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const Sizes z(model, setting);
  const double pairs = z.S * mean_keys(model, setting);
  return per_token(model, setting, 6 * z.S * z.D * z.a + 2 * z.score_maps * pairs * z.a + z.rest(), 1);
}

XlFlops released_flops(const TransformerXlOptions& model, const XlCostSetting& setting) {
  const Sizes z(model, setting);
  const double keys = z.S + z.M;
  const double positions = z.relative ? 2 * keys * z.D * z.a / z.B : 0;
  return per_token(model, setting, 6 * keys * z.D * z.a + positions + 2 * z.score_maps * z.S * keys * z.a + z.rest(),
                   1);
}

}  // namespace engram
