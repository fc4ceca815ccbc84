#include "apps/studies/spans/head_spans.hpp"

#include <algorithm>
#include <cmath>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/model/runtime.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"
#include "core/host_copy.hpp"
#include "core/rules/span_mask.hpp"

namespace engram {
namespace {

std::vector<double> read_layer(const CheckpointFile& file, const std::string& name, std::int64_t heads,
                               Runtime& runtime) {
  const Tensor tensor({heads}, file.at(name).dtype, runtime.backend().device(), runtime.memory());
  // Every name begins with "": whatever else the file holds is not wanted.
  file.load(runtime.backend(), std::vector<NamedTensor>{{name, tensor}}, {.may_be_ignored = {""}});
  std::vector<double> zeta = host_doubles(runtime.backend(), tensor);
  for (const double value : zeta)
    if (!(value >= 0 && value <= 1))
      throw FileError(text("spans: ", name, " in '", file.path().string(), "' must be in [0, 1], got ", value));
  return zeta;
}

/// Of spans that are computed for every query, what the run's last validation found.
std::vector<std::vector<double>> read_means(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kRun);
  try {
    if (found != file.metadata().end()) return parse_json(found->second).at(kSpanMeansKey);
  } catch (const nlohmann::json::exception&) {
    // As if they were not there.
  }
  throw UsageError(text("spans: '", file.path().string(),
                        "' must hold the means of its spans, which are computed for every query, got none",
                        "\n  the newest checkpoint of a run has those of its last validation"));
}

}  // namespace

std::vector<LayerSpans> spans_of(const AllAttentionOptions& model, const std::vector<std::vector<double>>& zeta) {
  const auto longest = static_cast<double>(model.max_span);
  std::vector<LayerSpans> layers(static_cast<std::size_t>(model.layers));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (std::size_t head = 0; head < static_cast<std::size_t>(model.context_heads()); ++head) {
      if (model.span == SpanKind::fixed) {
        layers[layer].push_back({1, longest, model.max_span});
        continue;
      }
      const double share = zeta.at(layer).at(head), span = share * longest;
      layers[layer].push_back(
          {share, span, std::min(model.max_span, static_cast<std::int64_t>(std::ceil(span)) + model.ramp)});
    }
  }
  return layers;
}

std::vector<LayerSpans> read_spans(const CheckpointFile& file, const AllAttentionOptions& model) {
  if (model.span == SpanKind::dynamic) return spans_of(model, read_means(file));
  std::vector<std::vector<double>> zeta;
  Runtime runtime;
  for (std::int64_t layer = 0; layer < model.layers && model.span == SpanKind::adaptive; ++layer)
    zeta.push_back(read_layer(file, text("layers.", layer, ".attention.span"), model.heads, runtime));
  return spans_of(model, zeta);
}

LayerRange range_of(const LayerSpans& heads) {
  const auto [least, most] = std::ranges::minmax_element(heads, {}, &HeadSpan::positions);
  LayerRange range{least->positions, most->positions, 0};
  for (const HeadSpan& head : heads) range.mean += static_cast<double>(head.positions);
  range.mean /= static_cast<double>(heads.size());
  return range;
}

SpanStatistics span_statistics(const AllAttentionOptions& model, const std::vector<LayerSpans>& layers,
                               std::int64_t block) {
  SpanStatistics summary;
  double longest_of_layers = 0;
  for (const LayerSpans& heads : layers) {
    const LayerRange range = range_of(heads);
    double zeta = 0;
    for (const HeadSpan& head : heads) zeta += head.zeta / static_cast<double>(heads.size());
    summary.mean_positions += range.mean / static_cast<double>(layers.size());
    summary.most_positions = std::max(summary.most_positions, range.most);
    longest_of_layers += static_cast<double>(range.most) / static_cast<double>(layers.size());
    const auto released =
        static_cast<double>(model.span == SpanKind::adaptive
                                ? span_trim(zeta, static_cast<int>(model.max_span), static_cast<int>(model.ramp)).size
                                : model.max_span);
    summary.released_mean += released / static_cast<double>(layers.size());
    summary.released_most = std::max(summary.released_most, released);
  }
  AllAttentionOptions context = model;
  context.slots = context.inner = 0;
  const auto flops = [&](double window) { return training_flops(context, {window, block, 1}).attention(); };
  summary.flops_ragged = flops(summary.mean_positions);
  summary.flops_layer = flops(longest_of_layers);
  summary.flops_full = flops(static_cast<double>(model.max_span));
  return summary;
}

}  // namespace engram
