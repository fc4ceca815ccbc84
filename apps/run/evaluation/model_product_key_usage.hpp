#pragma once
/// The usage of every product-key memory of a model, over a text.

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/run/evaluation/product_key_reads.hpp"
#include "apps/run/evaluation/product_key_usage.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

class ModelProductKeyUsage {
 public:
  struct Memory {
    std::int64_t layer;  ///< the first being 1, as in a configuration
    ProductKeyUsage usage;
  };

  /// Of a model without memories: none. Throws UsageError for more heads than ProductKeyUsage takes.
  explicit ModelProductKeyUsage(const ModelOptions& model);

  /// What evaluate() is given, to add what it reads; empty for a model without memories. This must outlive it.
  ProductKeyReads reads();
  /// In the order of the layers.
  const std::vector<Memory>& memories() const { return memories_; }
  /// Of the one table that several memories read, by all of them; none where each memory has its own, or there is but
  /// one memory.
  std::optional<ProductKeyUsage> shared_table() const;

 private:
  bool shared_ = false;
  std::vector<Memory> memories_;
};

}  // namespace engram
