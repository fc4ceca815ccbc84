#pragma once
/// How the queries of a product-key memory are normalised. [product-key 1.3].

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/names.hpp"
#include "nn/layers/batch_norm.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/rms_norm.hpp"

namespace engram {

enum class QueryNorm : std::uint8_t {
  none,
  batch,  ///< every number of a query over the rows of a batch, as in the paper: in training a query knows later ones
  layer,  ///< every sub-query by itself: mean 0 and variance 1, then gain and bias
  rms,    ///< every sub-query by itself: mean square 1, then gain
  l2      ///< every sub-query by itself: length 1; one of zeros stays zero
};
constexpr auto names_of(QueryNorm) {
  return std::to_array<Named<QueryNorm>>({{QueryNorm::none, "none"},
                                          {QueryNorm::batch, "batch"},
                                          {QueryNorm::layer, "layer"},
                                          {QueryNorm::rms, "rms"},
                                          {QueryNorm::l2, "l2"}});
}

/// Normalises queries [..., H dq] of H heads, each of F sub-queries, one for every factor of the keys (2: product keys,
/// 1: flat keys), of dq / F numbers. `batch` has a gain and a bias for each of the H dq numbers; `layer` and `rms` have
/// one gain (and bias) of dq / F numbers, which all sub-queries of all heads share.
class QueryNormalisation final : public Module {
 public:
  /// query_width: dq, a multiple of `factors`. All at least 1. Throws UsageError otherwise.
  QueryNormalisation(QueryNorm norm, std::int64_t heads, std::int64_t factors, std::int64_t query_width);
  /// queries: [..., H dq]. mask: for `batch`, whose masked rows become zero; the others take each row by itself and do
  /// not look at it.
  Variable forward(const Variable& queries, const RowMask& mask = {});
  void visit(Visitor& visit) override;

 private:
  QueryNorm norm_;
  std::int64_t sub_width_;  // dq / F
  std::optional<BatchNorm> batch_;
  std::optional<LayerNorm> layer_;
  std::optional<RmsNorm> rms_;
};

}  // namespace engram
