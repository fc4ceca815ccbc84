#include "tests/reference/character_model.hpp"

#include <algorithm>

#include "tests/reference/basic_ops.hpp"
#include "tests/reference/span_rules.hpp"

namespace engram::reference {
namespace {

struct LayerPlan {
  SpanAttentionOptions options;
  std::int64_t cache_length;
};

LayerPlan plan_layer(const CharacterModel& model, const AttentionWeights& weights, const ModelState& state) {
  const std::int64_t width = model.embedding.axis(1), span_length = model.positions.keys.axis(0);
  const std::int64_t slots = weights.slot_keys.given() ? weights.slot_keys.axis(1) : 0;
  LayerPlan plan{
      all_attention_options(width, model.heads, slots, span_length, static_cast<double>(model.ramp)),
      span_length,
  };
  plan.options.mask_offset = model.mask_offset;
  plan.options.pad = model.pad;
  plan.options.valid_past = state.valid_past;
  if (model.trimmed && weights.span.given()) {
    const SpanWindow window = span_window(weights.span.data, span_length, model.ramp);
    plan.options.max_distance = window.window;
    plan.cache_length = window.cache;
  }
  return plan;
}

/// The last `length` positions of cache and block, or all when there are fewer.
Array64 next_cache(const Array64& cache, const Array64& h, std::int64_t length) {
  const Array64 all = concat({cache, h}, 1);
  return slice(all, 1, std::max<std::int64_t>(0, all.axis(1) - length), all.axis(1));
}

}  // namespace

ModelResult character_model(const CharacterModel& model, const std::vector<std::int64_t>& tokens,
                            const std::vector<std::int64_t>& targets, std::int64_t streams, ModelState& state) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  require(streams >= 1 && count % streams == 0, "character_model: B*M tokens");
  const std::int64_t width = model.embedding.axis(1), block = count / streams;
  if (state.caches.empty()) {
    state.caches.assign(model.layers.size(), zeros({streams, 0, width}));
    state.valid_past.assign(static_cast<std::size_t>(streams), 0);
  }
  require(state.caches.size() == model.layers.size(), "character_model: one cache for every layer");
  ModelResult result;
  Array64 h = array({streams, block, width}, embedding(model.embedding, tokens).data);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const ModelLayer& layer = model.layers[l];
    const LayerPlan plan = plan_layer(model, layer.attention, state);
    Array64& cache = state.caches[l];
    LayerResult made = variant_attention_layer(layer.place, layer.attention, model.positions, cache, h, plan.options);
    if (layer.feed_forward) made.output = feed_forward_sublayer(*layer.feed_forward, made.output);
    if (layer.slot_sublayer) {
      const SlotSublayerWeights& second = *layer.slot_sublayer;
      made.output = layer_norm(made.output, slot_attention(made.output, second.keys, second.values), second.norm_gain,
                               second.norm_bias)
                        .normalised;
    }
    result.layers.push_back(std::move(made));
    cache = next_cache(cache, h, plan.cache_length);
    h = result.layers.back().output;
  }
  for (std::int64_t& seen : state.valid_past) seen += block;
  result.logits = linear(h, model.out_weight, model.out_bias);
  const std::vector<double> row_weights(tokens.size(), 1 / static_cast<double>(count));
  CrossEntropy loss = cross_entropy(result.logits, targets, row_weights);
  result.row_loss = std::move(loss.row_loss);
  result.loss = loss.loss;
  return result;
}

}  // namespace engram::reference
