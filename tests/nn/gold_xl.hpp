#pragma once
/// Fill rule G of [transformer-xl 12]: the numbers of the gold model.

#include "tests/nn/placed_xl.hpp"

namespace engram::harness {

/// Tensor number k: element e, in row-major order, is 0.3 sin(0.9 k + 0.7 e + 0.2), and `offset` more.
inline std::vector<double> fill_g(int k, std::int64_t count, double offset = 0) {
  std::vector<double> values;
  for (std::int64_t e = 0; e < count; ++e)
    values.push_back(offset + 0.3 * std::sin(0.9 * k + 0.7 * static_cast<double>(e) + 0.2));
  return values;
}

/// Fills the parameters that the model has by their numbers; e_n and s_n of shaw are 40 + n and 50 + n.
inline void fill_gold(PlacedXl& placed) {
  const auto fill = [&](const std::string& name, int k, double offset = 0) {
    if (placed.has(name)) placed.set(name, fill_g(k, placed.parameter(name).shape().count(), offset));
  };
  for (int bin = 0; bin < 3; ++bin) {
    const std::string part = text("clusters.", bin, ".");
    fill("embedding." + part + "table", bin);
    fill("embedding." + part + "projection", 3 + bin);
    fill("output." + part + "bias", 34 + bin);
  }
  fill("output.cluster_head.weight", 32);
  fill("output.cluster_head.bias", 33);
  fill("output.clusters.0.projection", 37);
  for (int n = 0; n < 2; ++n) {
    const std::string layer = text("layers.", n, "."), attention = layer + "attention.";
    const int first = 6 + 13 * n;
    const std::int64_t part = placed.parameter(attention + "query").shape().count();
    const std::vector<double> stacked = fill_g(first, 3 * part);
    for (int i = 0; i < 3; ++i)
      placed.set(attention + (i == 0   ? "query"
                              : i == 1 ? "key"
                                       : "value"),
                 {stacked.begin() + i * part, stacked.begin() + (i + 1) * part});
    fill(attention + "position", first + 1);
    fill(attention + "output", first + 2);
    fill(attention + "content_bias", first + 3);
    fill(attention + "position_bias", first + 4);
    fill(attention + "distance_keys", 40 + n);
    fill(attention + "distance_biases", 50 + n);
    fill(layer + "attention_norm.gain", first + 5, 1);
    fill(layer + "attention_norm.bias", first + 6);
    fill(layer + "feed_forward.inner.weight", first + 7);
    fill(layer + "feed_forward.inner.bias", first + 8);
    fill(layer + "feed_forward.outer.weight", first + 9);
    fill(layer + "feed_forward.outer.bias", first + 10);
    fill(layer + "feed_forward_norm.gain", first + 11, 1);
    fill(layer + "feed_forward_norm.bias", first + 12);
  }
}

inline const Ids kGoldTokens{0, 7, 9, 3, 10, 5}, kGoldTargets{7, 9, 3, 10, 5, 1};

/// The gold model run over the six tokens in segments of these lengths; `past` is of one stream.
inline std::vector<double> gold_losses(PlacedXl& placed, const Ids& lengths, ModelPast past) {
  std::vector<double> all;
  std::ptrdiff_t first = 0;
  for (const std::int64_t length : lengths) {
    const Ids tokens(kGoldTokens.begin() + first, kGoldTokens.begin() + first + length);
    const Ids targets(kGoldTargets.begin() + first, kGoldTargets.begin() + first + length);
    const std::vector<double> part = placed.losses(tokens, targets, past);
    all.insert(all.end(), part.begin(), part.end());
    first += length;
  }
  return all;
}

}  // namespace engram::harness
