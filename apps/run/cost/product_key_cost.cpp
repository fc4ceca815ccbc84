#include "apps/run/cost/product_key_cost.hpp"

#include "apps/run/cost/product_key_memory_cost.hpp"
#include "apps/run/cost/table_cost.hpp"

namespace engram {
namespace {

/// Sizes as numbers, and FLOPs of a forward pass per token.
struct ProductKeySizes {
  double d, F, L, V, H;
  double memories;  ///< that they add
  explicit ProductKeySizes(const ProductKeyTransformerOptions& model)
      : d(static_cast<double>(model.width)),
        F(static_cast<double>(model.feed_forward_width())),
        L(static_cast<double>(model.layers)),
        V(static_cast<double>(model.vocabulary)),
        H(static_cast<double>(model.heads)),
        memories(added_flops(model.memories, model.width, model.layers, 4 * d * F)) {}
  double products() const { return L * (8 * d * d + 4 * d * F) + 2 * d * V + memories; }
  double attention(double keys) const { return L * 4 * d * keys; }
};

/// Keys that a query sees, in the mean over a window.
double mean_keys(std::int64_t window) { return (static_cast<double>(window) + 1) / 2; }

}  // namespace

double forward_flops(const ProductKeyTransformerOptions& model, std::int64_t window) {
  const ProductKeySizes size(model);
  return size.products() + size.attention(mean_keys(window));
}

TrainingFlops training_flops(const ProductKeyTransformerOptions& model, std::int64_t window) {
  const ProductKeySizes size(model);
  TrainingFlops flops;
  flops.products = 3 * size.products();
  flops.attention_forward = size.attention(mean_keys(window));
  flops.attention_backward = 2 * flops.attention_forward;
  return flops;
}

StepCost step_cost(const ProductKeyTransformerOptions& model, const StepSetting& setting) {
  const ProductKeySizes size(model);
  const auto tokens = static_cast<double>(setting.batch * setting.block);
  StepCost cost;
  cost.window = mean_keys(setting.block);
  cost.training = training_flops(model, setting.block);
  cost.attention_exponentials = size.L * size.H * cost.window;
  cost.output_exponentials = size.V;
  cost.exponentials = 2 * cost.attention_exponentials + cost.output_exponentials;
  const TableSizes tables = table_sizes(model.memories, model.width, model.layers, setting.tables);
  // Per layer queries, keys, values, result and the rows' statistics, forward once and backward twice.
  cost.bytes =
      kFloatBytes * 3 * size.L * tokens * (4 * size.d + size.H) +
      update_bytes(setting.optimizer, setting.parameters - tables.parameters()) +
      table_traffic(model.memories, model.width, model.layers, setting.tables, setting.batch * setting.block).bytes();
  cost.forward_flops = cost.frozen_flops = forward_flops(model, setting.block);
  cost.token_bytes = kFloatBytes * (size.L * (4 * size.d * size.d + 2 * size.d * size.F) + size.d * size.V) +
                     added_token_bytes(model.memories, model.width, model.layers, 2 * size.d * size.F);
  return cost;
}

}  // namespace engram
