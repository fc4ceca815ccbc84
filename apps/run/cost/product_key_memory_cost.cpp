#include "apps/run/cost/product_key_memory_cost.hpp"

#include <cmath>

namespace engram {
namespace {

/// FLOPs of the linear maps from the model's width to all queries.
double query_flops(const ProductKeyOptions& options, std::int64_t width) {
  if (options.query_network == QueryNetworkKind::identity) return 0;
  const bool by_head = options.query_network == QueryNetworkKind::heads_mlp;
  const auto outputs = static_cast<double>(options.heads * options.query_width);
  const double networks =
      by_head ? static_cast<double>(options.heads * (options.keys == KeyKind::flat ? 1 : options.factors)) : 1;
  double flops = 0, in = static_cast<double>(width);
  if (options.query_network != QueryNetworkKind::linear) {
    for (const std::int64_t inner : options.query_hidden) {
      flops += 2 * networks * in * static_cast<double>(inner);
      in = static_cast<double>(inner);
    }
  }
  return flops + 2 * in * outputs;
}

}  // namespace

ProductKeyMemoryCost product_key_memory_cost(const ProductKeyOptions& options, std::int64_t width) {
  const auto heads = static_cast<double>(options.heads),
             value_width = static_cast<double>(options.value_width_in(width));
  const auto keys = static_cast<double>(options.keys == KeyKind::flat ? options.slots() : options.subkeys);
  const double reads = heads * static_cast<double>(options.selected), d = static_cast<double>(width);
  ProductKeyMemoryCost cost;
  cost.query = query_flops(options, width);
  cost.scores = 2 * heads * keys * static_cast<double>(options.query_width);
  cost.read = 2 * reads * value_width;
  if (options.gate == MemoryGate::swish) cost.output += 2 * d * value_width;
  if (options.gate == MemoryGate::scalar) cost.output += 2 * d;
  if (options.gate == MemoryGate::swish || options.projection) cost.output += 2 * d * value_width;
  cost.read_bytes = reads * value_width * static_cast<double>(size_of(options.value_dtype));
  return cost;
}

double added_flops(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                   double feed_forward_flops) {
  if (!options.any()) return 0;
  const auto memories = static_cast<double>(options.memory_layers(model_layers).size());
  const double replaced = options.placement == MemoryPlacement::replace ? feed_forward_flops : 0;
  return memories * (product_key_memory_cost(options, width).flops() - replaced);
}

double touched_rows(double slots, double uses) { return -slots * std::expm1(uses * std::log1p(-1 / slots)); }

}  // namespace engram
