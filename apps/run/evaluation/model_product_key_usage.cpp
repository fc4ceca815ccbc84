#include "apps/run/evaluation/model_product_key_usage.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {

ModelProductKeyUsage::ModelProductKeyUsage(const ModelOptions& model) {
  const ProductKeyOptions& options = model.memories();
  if (!options.any()) return;
  shared_ = options.shared_values;
  for (const std::int64_t layer : options.memory_layers(model.layers()))
    memories_.push_back({layer, ProductKeyUsage(options.slots(), options.heads, options.selected)});
}

ProductKeyReads ModelProductKeyUsage::reads() {
  if (memories_.empty()) return {};
  return [this](std::size_t layer, std::span<const std::int64_t> ids, std::span<const double> weights) {
    const auto found = std::ranges::find(memories_, static_cast<std::int64_t>(layer) + 1, &Memory::layer);
    if (found == memories_.end()) throw Error(text("memory usage: layer ", layer + 1, " must have a memory, got none"));
    found->usage.add(ids, weights);
  };
}

std::optional<ProductKeyUsage> ModelProductKeyUsage::shared_table() const {
  if (!shared_ || memories_.size() < 2) return std::nullopt;
  ProductKeyUsage all = memories_.front().usage;
  for (std::size_t i = 1; i < memories_.size(); ++i) all.merge(memories_[i].usage);
  return all;
}

}  // namespace engram
