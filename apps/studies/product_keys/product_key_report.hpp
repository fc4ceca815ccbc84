#pragma once
/// What `engram memory` says about the product-key memories of a model.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/product_key_usage.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/product_keys/idle_rows.hpp"
#include "apps/studies/product_keys/row_norms.hpp"

namespace engram {

struct ProductKeyReport {
  struct Row {
    std::int64_t layer = 0;  ///< the first being 1; 0: the one table that all memories read
    ProductKeyUsage::Metrics metrics;
    std::vector<double> shares;      ///< ProductKeyUsage::falling_shares()
    RowNorms norms;                  ///< of the values
    std::optional<IdleRows> idle{};  ///< of the table's rows in training, where the checkpoint knows

    /// "6", or "all" for the table that all memories read.
    std::string name() const;
  };

  std::string checkpoint, data, split;
  std::int64_t step = 0;
  std::int64_t heads = 0, selected = 0;
  std::vector<Row> rows;  ///< of each memory, then of the table that they share

  /// Takes the figures of what the model read, and of its tables. There must be reads; throws Error where their weights
  /// are no numbers.
  void add(const ModelProductKeyUsage& usage, TrainedModel& trained, Backend& backend);
};

std::string table_of(const ProductKeyReport& report);
nlohmann::json json_of(const ProductKeyReport& report);
/// A line for each slot that was read: its rank by weight, its share of all weight, and the share of the slots up to it
/// together. Of more than kMostCsvRanks slots ranks at equal ratios, the first and the last among them.
std::string csv_of(const ProductKeyReport& report);
inline constexpr std::int64_t kMostCsvRanks = 2000;
/// How the weight falls from the slot that gets most of it to the one that gets least. Both axes go by ratio: the rank
/// of a slot, up to all slots, and its share of the weight. A line for each memory, with marks where 50, 90 and 99% of
/// the weight lie to the left; beside them the line that a memory would have whose slots are used alike. Where a line
/// ends before the right edge, the other slots were not read. In product_key_picture.cpp.
std::string svg_of(const ProductKeyReport& report);

/// At most `most` of the ranks 1 .. count, ascending: all of them, or else at equal ratios as far as they are whole
/// numbers; always the first and the last. count and most at least 2, or count 1.
std::vector<std::int64_t> thinned_ranks(std::int64_t count, std::int64_t most);

}  // namespace engram
