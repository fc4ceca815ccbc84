#pragma once
/// What `engram memory` says about the memories of a model: a table, one object, and CSV.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/evaluation/memory_usage.hpp"
#include "apps/run/evaluation/model_memory_usage.hpp"
#include "apps/studies/product_keys/idle_rows.hpp"
#include "apps/studies/product_keys/row_norms.hpp"

namespace engram {

struct ProductKeyReport {
  struct Row {
    std::int64_t layer = 0;  ///< the first being 1; 0: the one table that all memories read
    MemoryUsage::Metrics metrics;
    std::vector<double> shares;      ///< MemoryUsage::falling_shares()
    RowNorms norms;                  ///< of the values
    std::optional<IdleRows> idle{};  ///< of the table's rows in training, where the checkpoint knows

    /// "6", or "all" for the table that all memories read.
    std::string name() const;
  };

  std::string checkpoint, data, split;
  std::int64_t step = 0;
  std::int64_t heads = 0, selected = 0;
  std::vector<Row> rows;  ///< of each memory, then of the table that they share

  /// The values of a memory by its layer, the first being 1.
  using Tables = std::function<PaddedTable(std::int64_t layer)>;
  /// Takes the figures of what was read. There must be reads; throws Error where their weights are no numbers.
  void add(const ModelMemoryUsage& usage, Backend& backend, const Tables& tables);
};

std::string memory_table(const ProductKeyReport& report);
nlohmann::json memory_json(const ProductKeyReport& report);
/// A line for each slot that was read: its rank by weight, its share of all weight, and the share of the slots up to it
/// together. Of more than kMostCsvRanks slots ranks at equal ratios, the first and the last among them.
std::string memory_csv(const ProductKeyReport& report);
inline constexpr std::int64_t kMostCsvRanks = 2000;

/// At most `most` of the ranks 1 .. count, ascending: all of them, or else at equal ratios as far as they are whole
/// numbers; always the first and the last. count and most at least 2, or count 1.
std::vector<std::int64_t> thinned_ranks(std::int64_t count, std::int64_t most);

}  // namespace engram
