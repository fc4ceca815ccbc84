#include "nn/layers/query_network.hpp"

#include <memory_resource>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {

void QueryNetworkOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("query network: ");
  rules.within("width", width, 1, kWidth);
  rules.within("heads", heads, 1, 64);
  rules.within("factors", factors, 1, 3);
  rules.within("query_width", query_width, 2, kWidth);
  rules.require(query_width % factors == 0, "query_width", text("a multiple of factors ", factors), query_width);
  const bool layers = kind == QueryNetworkKind::mlp || kind == QueryNetworkKind::heads_mlp;
  rules.require(hidden.empty() != layers, "number of hidden layers",
                text(layers ? "at least 1" : "0", " for kind ", name_of(kind)),
                static_cast<std::int64_t>(hidden.size()));
  constexpr std::size_t kMostHidden = 64;
  rules.require(hidden.size() <= kMostHidden, "number of hidden layers", text("at most ", kMostHidden),
                static_cast<std::int64_t>(hidden.size()));
  for (const std::int64_t size : hidden) rules.within("the width of a hidden layer", size, 1, kWidth);
  if (kind == QueryNetworkKind::identity && query_width != width)
    throw UsageError(text("query network: query_width must be the width ", width, " for kind identity, got ",
                          query_width, "\n  only another kind changes the width"));
}

QueryMlp::QueryMlp(std::int64_t in, const std::vector<std::int64_t>& hidden, std::int64_t out, bool batch_norms) {
  for (const std::int64_t size : hidden) {
    layers_.push_back(std::make_unique<Linear>(in, size));
    if (batch_norms) norms_.push_back(std::make_unique<BatchNorm>(size));
    in = size;
  }
  layers_.push_back(std::make_unique<Linear>(in, out));
}

Variable QueryMlp::forward(const Variable& x, const RowMask& mask) {
  Variable y = x;
  for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer) {
    y = layers_[layer]->forward(y);
    if (!norms_.empty()) y = norms_[layer]->forward(y, mask);
    y = relu(y);
  }
  return layers_.back()->forward(y);
}

void QueryMlp::visit(Visitor& visit) {
  visit("layers", layers_);
  visit("norms", norms_);
}

QueryNetwork::QueryNetwork(const QueryNetworkOptions& options)
    : heads_(checked(options).heads), norm_(options.norm, options.heads, options.factors, options.query_width) {
  if (options.kind == QueryNetworkKind::identity) return;
  const std::int64_t maps = options.kind == QueryNetworkKind::heads_mlp ? options.heads * options.factors : 1;
  const std::int64_t out = options.heads * options.query_width / maps;
  for (std::int64_t map = 0; map < maps; ++map)
    maps_.push_back(std::make_unique<QueryMlp>(options.width, options.hidden, out, options.norm == QueryNorm::batch));
}

Variable QueryNetwork::forward(const Variable& x, const RowMask& mask) { return norm_.forward(raw(x, mask), mask); }

Variable QueryNetwork::raw(const Variable& x, const RowMask& mask) {
  if (maps_.size() == 1) return maps_.front()->forward(x, mask);
  if (maps_.empty() && heads_ == 1) return x;
  std::pmr::vector<Variable> parts(x.tape().step().objects());
  for (const auto& map : maps_) parts.push_back(map->forward(x, mask));
  if (maps_.empty()) parts.assign(static_cast<std::size_t>(heads_), x);
  return concat(parts, -1);
}

void QueryNetwork::visit(Visitor& visit) {
  if (maps_.size() == 1)
    maps_.front()->visit(visit);
  else
    visit("maps", maps_);
  visit("norm", norm_);
}

}  // namespace engram
