#include "apps/run/cost/table_cost.hpp"

#include "apps/run/cost/product_key_memory_cost.hpp"

namespace engram {
namespace {

constexpr std::int64_t kNumberBytes = 4;  // bytes

}  // namespace

std::int64_t table_row_state_bytes(const TableOptimizerOptions& optimizer) {
  const std::int64_t last_use = optimizer.last_use ? kNumberBytes : 0;
  if (optimizer.kind == TableKind::row_adagrad) return kNumberBytes + last_use;  // the sum
  const bool counts = optimizer.mode == TableMode::row_step || optimizer.mode == TableMode::deferred;
  return (counts ? kNumberBytes : 0) + last_use;
}

std::int64_t table_moment_bytes(const TableOptimizerOptions& optimizer, std::int64_t row_numbers) {
  return optimizer.kind == TableKind::adam ? 2 * kNumberBytes * row_numbers : 0;
}

TableSizes table_sizes(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                       const TableOptimizerOptions& optimizer) {
  if (!options.any()) return {};
  TableSizes sizes;
  sizes.memories = static_cast<std::int64_t>(options.memory_layers(model_layers).size());
  sizes.tables = options.shared_values ? 1 : sizes.memories;
  sizes.rows = options.slots();
  sizes.row_numbers = options.value_width_in(width);
  sizes.value_bytes = sizes.parameters() * static_cast<std::int64_t>(size_of(options.value_dtype));
  sizes.state_bytes =
      sizes.tables * sizes.rows * (table_row_state_bytes(optimizer) + table_moment_bytes(optimizer, sizes.row_numbers));
  return sizes;
}

TableTraffic table_traffic(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                           const TableOptimizerOptions& optimizer, std::int64_t tokens) {
  const TableSizes sizes = table_sizes(options, width, model_layers, optimizer);
  if (sizes.memories == 0) return {};
  const auto memories = static_cast<double>(sizes.memories), tables = static_cast<double>(sizes.tables);
  const auto rows = static_cast<double>(sizes.rows), row_numbers = static_cast<double>(sizes.row_numbers);
  const double row_bytes = row_numbers * static_cast<double>(size_of(options.value_dtype));
  const double uses = memories / tables * static_cast<double>(tokens * options.heads * options.selected);
  TableTraffic traffic;
  traffic.touched = tables * touched_rows(rows, uses);
  traffic.gathered_bytes = memories * static_cast<double>(tokens) * product_key_memory_cost(options, width).read_bytes;
  // Memories that share a table go through its rows one after the other.
  traffic.gradient_bytes = memories * touched_rows(rows, uses * tables / memories) * row_bytes;
  const bool all = optimizer.kind == TableKind::adam && optimizer.mode == TableMode::dense;
  traffic.update_bytes =
      (all ? tables * rows : traffic.touched) *
      (2 * row_bytes + kNumberBytes * row_numbers +
       2 * static_cast<double>(table_row_state_bytes(optimizer) + table_moment_bytes(optimizer, sizes.row_numbers)));
  return traffic;
}

double added_token_bytes(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers,
                         double feed_forward_parameters) {
  if (!options.any()) return 0;
  const auto memories = static_cast<double>(options.memory_layers(model_layers).size());
  const ProductKeyMemoryCost cost = product_key_memory_cost(options, width);
  const double parameters = (cost.flops() - cost.read) / 2;  // a number of a key or map is a multiply-add
  const double replaced = options.placement == MemoryPlacement::replace ? feed_forward_parameters : 0;
  return memories * (kNumberBytes * (parameters - replaced) + cost.read_bytes);
}

}  // namespace engram
