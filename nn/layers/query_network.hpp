#pragma once
/// From the states of a layer to the queries of its memory. [product-key 1.2].

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/names.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/query_norm.hpp"

namespace engram {

enum class QueryNetworkKind : std::uint8_t {
  linear,     ///< one affine map for all heads, which is the same as one for each
  mlp,        ///< hidden layers, shared by the heads, with relu between
  heads_mlp,  ///< one such network for every head and factor of the keys, with a sub-query as its output
  identity    ///< none: every head sees the states themselves
};
constexpr auto names_of(QueryNetworkKind) {
  return std::to_array<Named<QueryNetworkKind>>({{QueryNetworkKind::linear, "linear"},
                                                 {QueryNetworkKind::mlp, "mlp"},
                                                 {QueryNetworkKind::heads_mlp, "heads_mlp"},
                                                 {QueryNetworkKind::identity, "identity"}});
}

struct QueryNetworkOptions {
  std::int64_t width = 0;        ///< d, of the states
  std::int64_t heads = 1;        ///< H
  std::int64_t factors = 2;      ///< F, sub-queries of a query: 2 for product keys, 1 for flat keys
  std::int64_t query_width = 0;  ///< dq, of the query of a head; at least 2, a multiple of `factors`
  QueryNetworkKind kind = QueryNetworkKind::linear;
  std::vector<std::int64_t> hidden = {};  ///< sizes of the hidden layers; mlp and heads_mlp alone, and at least one
  QueryNorm norm = QueryNorm::batch;      ///< of the queries; `batch` normalises hidden layers too, before their relu

  /// Throws UsageError naming the option and its value.
  void check() const;
};

/// Affine maps with relu between, and batch norms before it where they are asked for. All weights and biases start
/// uniform in +-1/sqrt(inputs of the map).
class QueryMlp final : public Module {
 public:
  /// From `in` numbers over the hidden layers to `out`.
  QueryMlp(std::int64_t in, const std::vector<std::int64_t>& hidden, std::int64_t out, bool batch_norms);
  /// x: [..., in] -> [..., out].
  Variable forward(const Variable& x, const RowMask& mask);
  void visit(Visitor& visit) override;

 private:
  std::vector<std::unique_ptr<Linear>> layers_;
  std::vector<std::unique_ptr<BatchNorm>> norms_;  // of the hidden ones, or none
};

class QueryNetwork final : public Module {
 public:
  explicit QueryNetwork(const QueryNetworkOptions& options);
  /// x: [..., d] -> queries [..., H dq]: head h has the numbers from h dq on, factor f of it those from h dq + f dq /
  /// F. mask: rows that no batch norm may see; what their queries are says QueryNormalisation.
  Variable forward(const Variable& x, const RowMask& mask = {});
  void visit(Visitor& visit) override;

 private:
  Variable raw(const Variable& x, const RowMask& mask);

  std::int64_t heads_;
  std::vector<std::unique_ptr<QueryMlp>> maps_;  // heads_mlp: H F; identity: none; else one
  QueryNormalisation norm_;
};

}  // namespace engram
