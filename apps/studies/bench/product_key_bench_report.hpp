#pragma once
/// The results of `engram bench --memory` as text for people and as JSON, and what they say about the aims of
/// [product-key 10], test 24.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/bench/product_key_bench.hpp"

namespace engram {

/// One aim and what was measured.
struct ProductKeyVerdict {
  std::string what;
  double figure = 0;
  double aim = 0;
  bool at_least = true;  ///< the figure should be at least the aim; false: at most
  bool met() const { return at_least ? figure >= aim : figure <= aim; }
};

/// Of all aims that the measured sizes allow. [product-key 6, 7.3, 10] (test 24).
std::vector<ProductKeyVerdict> product_key_verdicts(const ProductKeyBench& bench, const ProductKeyBenchResult& result);

/// Seconds that a pass of the layer needs by the cost model of [product-key 7.1]: products of query and scores at
/// the machine's product rate, and the values' bytes at the rate of random rows.
double model_seconds(const ProductKeyBench& bench, const ProductKeyBenchResult& result, const LayerRun& run);

std::string table_of(const ProductKeyBench& bench, const ProductKeyBenchResult& result);
nlohmann::json json_of(const ProductKeyBench& bench, const ProductKeyBenchResult& result);

}  // namespace engram
