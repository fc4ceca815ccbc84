#pragma once
/// What a short validation reports of the product-key memories of a model.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

/// What one validation says of the memories; nothing, at no cost, where there are none.
class ProductKeyMetrics {
 public:
  explicit ProductKeyMetrics(const ModelOptions& model);

  /// What TrainingSession::validate() is given. This must outlive it.
  ProductKeyReads reads() { return usage_.reads(); }
  /// Adds to a line of metrics, a number for each memory: memory_layers, the first layer being 1; memory_usage and
  /// memory_top_usage, shares of the slots; memory_kl, nats. ProductKeyUsage::Metrics says what they are. After the
  /// pass.
  void add_to(nlohmann::json& line) const;
  /// The metrics for people, in one line; empty without memories.
  std::string note() const;

 private:
  ModelProductKeyUsage usage_;
};

}  // namespace engram
