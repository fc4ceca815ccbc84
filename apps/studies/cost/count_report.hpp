#pragma once
/// What `engram count` says of a configuration: parameters, memory and arithmetic of its model, which is not allocated.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/files/token_view.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/solved_width.hpp"
#include "apps/run/cost/table_cost.hpp"
#include "apps/studies/cost/memory_report.hpp"
#include "apps/studies/cost/rank_report.hpp"

namespace engram {

/// FLOPs per token where heads see so many positions.
struct CostRow {
  std::int64_t positions;
  double evaluation, training;
};
struct CostTable {
  std::string_view positions;  ///< what the first column counts
  std::string_view json_name;
  std::vector<CostRow> rows;
};

/// The tables of values of a model with product-key memories.
struct ValueTables {
  TableSizes sizes;
  TableTraffic traffic;  ///< of a training step
  TableOptimizerOptions optimizer;
  DType dtype;
  double gathered_bytes = 0;  ///< per token of a forward pass, by all memories
  std::int64_t frozen = 0;    ///< tables that training.freeze leaves as they are, without state

  double touched_share() const { return traffic.touched / static_cast<double>(sizes.tables * sizes.rows); }
};

struct CountReport {
  std::string config, data;  ///< files; the data may be empty
  ModelFamily family{};
  std::int64_t vocabulary = 0;
  ParameterCount parameters;
  std::int64_t state_bytes = 0;        ///< of training
  int bytes_per_parameter = 0;         ///< of it
  std::int64_t frozen = 0;             ///< parameters, but tables, that training.freeze leaves without gradients
  std::int64_t sum_bytes = 0;          ///< of copies that sums over the pieces of a split batch keep besides
  std::int64_t pieces = 1;             ///< of a batch
  std::optional<ValueTables> tables;   ///< none without memories
  std::vector<double> cluster_shares;  ///< empty without clusters
  CostTable costs;
  std::int64_t tokens_per_step = 0;
  std::optional<SolvedWidth> solved;   ///< left to who asks for it
  std::optional<RankReport> ranks;     ///< left to who asks for it
  std::optional<MemoryReport> memory;  ///< left to who asks for it
};

/// Counts a model whose vocabulary is known. `training`: the split that words of clusters are counted in; none: their
/// frequencies are assumed. The names of files are left empty.
CountReport count_report(const RunConfig& config, const std::optional<data::TokenView>& training);

std::string table_of(const CountReport& report);
nlohmann::json json_of(const CountReport& report);

}  // namespace engram
