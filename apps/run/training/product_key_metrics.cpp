#include "apps/run/training/product_key_metrics.hpp"

#include <fmt/format.h>

#include "core/files/json.hpp"

namespace engram {

ProductKeyMetrics::ProductKeyMetrics(const ModelOptions& model) : usage_(model) {}

void ProductKeyMetrics::add_to(nlohmann::json& line) const {
  for (const ModelProductKeyUsage::Memory& memory : usage_.memories()) {
    const ProductKeyUsage::Metrics found = memory.usage.metrics();
    line["memory_layers"].push_back(memory.layer);
    line["memory_usage"].push_back(found.usage);
    line["memory_top_usage"].push_back(found.top_usage);
    line["memory_kl"].push_back(found.kl);
  }
}

std::string ProductKeyMetrics::note() const {
  std::string line;
  for (const ModelProductKeyUsage::Memory& memory : usage_.memories()) {
    const ProductKeyUsage::Metrics found = memory.usage.metrics();
    line += fmt::format("{}layer {} usage {:.1f}% top-1 {:.1f}% KL {:.3f}", line.empty() ? "memories: " : ", ",
                        memory.layer, 100 * found.usage, 100 * found.top_usage, found.kl);
  }
  return line;
}

}  // namespace engram
