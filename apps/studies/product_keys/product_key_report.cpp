#include "apps/studies/product_keys/product_key_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "apps/report/text_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/mapped_table.hpp"

namespace engram {
namespace {

using nlohmann::json;

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string length(std::optional<double> norm) { return norm ? fmt::format("{:.4f}", *norm) : "-"; }

/// Which slots are used, and how evenly.
std::string slot_lines(const ProductKeyReport& report) {
  std::vector<TableColumn> columns{{"memory", {}, true}, {"slots", {}}, {"usage", {}}, {"by weight", {}}, {"top-1", {}},
                                   {"untouched", {}},    {"KL", {}},    {"of", {}},    {"by reads", {}},  {"Gini", {}}};
  for (const ProductKeyReport::Row& row : report.rows) {
    const ProductKeyUsage::Metrics& found = row.metrics;
    const std::string cells[] = {row.name(),
                                 fmt::format("{}", found.slots),
                                 percent(found.usage),
                                 percent(found.usage_by_weight),
                                 percent(found.top_usage),
                                 fmt::format("{}", found.untouched),
                                 fmt::format("{:.4f}", found.kl),
                                 fmt::format("{:.4f}", std::log(static_cast<double>(found.slots))),
                                 fmt::format("{:.4f}", found.kl_by_count),
                                 fmt::format("{:.4f}", found.gini)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return aligned(columns);
}

/// Where the weight is, and how heads share the slots.
std::string weight_lines(const ProductKeyReport& report) {
  std::vector<TableColumn> columns{{"memory", {}, true}, {"50%", {}},      {"90%", {}},     {"99%", {}},
                                   {"entropy", {}},      {"best one", {}}, {"overlap", {}}, {"repeated", {}},
                                   {"norm", {}},         {"unread", {}}};
  for (const ProductKeyReport::Row& row : report.rows) {
    const ProductKeyUsage::Metrics& found = row.metrics;
    const std::string cells[] = {row.name(),
                                 fmt::format("{}", found.half_mass),
                                 fmt::format("{}", found.most_mass),
                                 fmt::format("{}", found.nearly_all_mass),
                                 fmt::format("{:.4f}", found.score_entropy),
                                 percent(found.top_weight),
                                 percent(found.head_overlap),
                                 percent(found.repeated_reads),
                                 length(row.norms.read),
                                 length(row.norms.unread)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return aligned(columns);
}

/// For how long training has not used rows; empty where no checkpoint says.
std::string idle_lines(const ProductKeyReport& report) {
  const auto known = std::ranges::find_if(report.rows, [](const auto& row) { return row.idle.has_value(); });
  if (known == report.rows.end()) return {};
  std::vector<TableColumn> columns{{"memory", {}, true}, {"never", {}}};
  for (const IdleRows::Longer& longer : known->idle->longer) columns.push_back({fmt::format("> {}", longer.steps), {}});
  for (const ProductKeyReport::Row& row : report.rows) {
    if (!row.idle) continue;
    const auto share = [&row](std::int64_t rows) {
      return percent(static_cast<double>(rows) / static_cast<double>(row.idle->all));
    };
    columns[0].cells.push_back(row.name());
    columns[1].cells.push_back(share(row.idle->never));
    for (std::size_t i = 0; i < row.idle->longer.size(); ++i)
      columns[i + 2].cells.push_back(share(row.idle->longer[i].rows));
  }
  return fmt::format("\n{}\nnever      rows of values that no step of training used; > S: none of the last S steps\n",
                     aligned(columns));
}

json usage_json(const ProductKeyUsage::Metrics& found) {
  return {{"slots", found.slots},
          {"positions", found.positions},
          {"usage", found.usage},
          {"usage_by_weight", found.usage_by_weight},
          {"top_usage", found.top_usage},
          {"untouched", found.untouched},
          {"kl", found.kl},
          {"kl_most", std::log(static_cast<double>(found.slots))},
          {"kl_by_reads", found.kl_by_count},
          {"gini", found.gini},
          {"slots_of_50_percent", found.half_mass},
          {"slots_of_90_percent", found.most_mass},
          {"slots_of_99_percent", found.nearly_all_mass},
          {"score_entropy", found.score_entropy},
          {"top_weight", found.top_weight},
          {"head_overlap", found.head_overlap},
          {"repeated_reads", found.repeated_reads},
          {"total_weight", found.total_weight}};
}

/// The parameter whose rows are the values of a layer's memory.
std::string table_name(const ParameterStore& store, std::int64_t layer) {
  std::string name = text("layers.", layer - 1, ".memory.values.rows");
  const auto shared = store.aliases().find(name);
  return shared == store.aliases().end() ? name : shared->second;
}

/// The values that a layer's memory reads.
PaddedTable values_of(const ParameterStore& store, std::int64_t layer) {
  const std::string name = table_name(store, layer);
  const Parameter* const table = store.find(name);
  if (table == nullptr) throw Error(text("memory: layer ", layer, " must have a table '", name, "', got none"));
  return {table->mapped() != nullptr ? table->mapped()->padded_rows() : table->value(), table->shape()[1]};
}

/// For how long training has left rows of the table alone, where it was told to remember.
std::optional<IdleRows> idle_rows_of(const CheckpointFile& file, const std::string& table, std::int64_t step) {
  const std::string name = text(kOptimizerPrefix, table, ".last_use");
  if (!file.has(name)) return std::nullopt;
  const std::span<const std::byte> bytes = file.bytes(file.at(name));
  std::vector<std::int32_t> last_use(bytes.size() / sizeof(std::int32_t));
  std::memcpy(last_use.data(), bytes.data(), last_use.size() * sizeof(std::int32_t));
  return idle_rows(last_use, step);
}

}  // namespace

std::string ProductKeyReport::Row::name() const { return layer > 0 ? fmt::format("{}", layer) : "all"; }

void ProductKeyReport::add(const ModelProductKeyUsage& usage, TrainedModel& trained, Backend& backend) {
  const auto norms = [&](std::int64_t layer, const ProductKeyUsage& found) {
    return row_norms(values_of(trained.store(), layer), backend,
                     [&found](std::int64_t slot) { return found.was_read(slot); });
  };
  for (const auto& [layer, found] : usage.memories())
    rows.push_back({layer, found.metrics(), found.falling_shares(), norms(layer, found)});
  if (const std::optional<ProductKeyUsage> table = usage.shared_table())
    rows.push_back({0, table->metrics(), table->falling_shares(), norms(usage.memories().front().layer, *table)});
  for (const Row& row : rows)
    if (row.shares.empty())
      throw Error(text("memory: the weights of layer ", row.name(), " must be numbers, got none",
                       "\n  the parameters of the checkpoint are not finite, or have made scores that are not"));
  const CheckpointFile file(trained.path());
  for (Row& row : rows) {
    const std::int64_t layer = row.layer > 0 ? row.layer : rows.front().layer;
    row.idle = idle_rows_of(file, table_name(trained.store(), layer), trained.step());
  }
}

std::string table_of(const ProductKeyReport& report) {
  std::string lines =
      fmt::format("{} at step {}, split {}: {} positions, {} heads with {} slots each\n\n{}\n{}", report.checkpoint,
                  report.step, report.split, report.rows.front().metrics.positions, report.heads, report.selected,
                  slot_lines(report), "memory     the layer, the first being 1");
  if (report.rows.back().layer == 0) lines += "; all: the one table, as all memories together read it";
  lines +=
      "\n"
      "usage      slots that any head read at any position; by weight: whose weights are not all 0\n"
      "top-1      slots that were ever the best one of a head\n"
      "untouched  slots that were never read\n"
      "KL         from even use, nats: 0 when every slot gets the same weight, `of` when one gets all\n"
      "by reads   the same, every read counting alike\n"
      "Gini       of the weights: 0 when all slots get the same, towards 1 when few get all\n\n";
  return lines + weight_lines(report) +
         fmt::format(
             "\n50%        the fewest slots that together get half of the weight; 90%, 99%: likewise\n"
             "entropy    of the weights of a head at a position, mean, nats: at most {:.4f}, all {} slots alike\n"
             "best one   the largest of these weights, mean\n"
             "overlap    of the slots that were read, those that more than one head read\n"
             "repeated   of the reads, those whose slot another head reads at the same position\n"
             "norm       length of the values of slots that were read, mean; unread: of the others\n",
             std::log(static_cast<double>(report.selected)), report.selected) +
         idle_lines(report);
}

json json_of(const ProductKeyReport& report) {
  json object{{"checkpoint", report.checkpoint}, {"step", report.step},   {"data", report.data},
              {"split", report.split},           {"heads", report.heads}, {"selected", report.selected},
              {"memories", json::array()}};
  const auto or_null = [](std::optional<double> norm) { return norm ? json(*norm) : json(); };
  for (const ProductKeyReport::Row& row : report.rows) {
    json figures = usage_json(row.metrics);
    figures["norm_read"] = or_null(row.norms.read);
    figures["norm_unread"] = or_null(row.norms.unread);
    if (row.idle) {
      figures["training_never"] = row.idle->never;
      figures["training_idle"] = json::array();
      for (const IdleRows::Longer& longer : row.idle->longer)
        figures["training_idle"].push_back({{"steps", longer.steps}, {"rows", longer.rows}});
    }
    if (row.layer == 0) {
      object["shared_table"] = figures;
      continue;
    }
    figures["layer"] = row.layer;
    object["memories"].push_back(figures);
  }
  return object;
}

std::vector<std::int64_t> thinned_ranks(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> ranks;
  if (count <= most) {
    for (std::int64_t rank = 1; rank <= count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  const double step = std::log(static_cast<double>(count)) / static_cast<double>(most - 1);
  for (std::int64_t i = 0; i < most; ++i) {
    const std::int64_t rank = i == most - 1 ? count : std::llround(std::exp(step * static_cast<double>(i)));
    if (ranks.empty() || rank > ranks.back()) ranks.push_back(rank);
  }
  return ranks;
}

std::string csv_of(const ProductKeyReport& report) {
  std::string lines = "memory,rank,share,share_up_to\n";
  for (const ProductKeyReport::Row& row : report.rows) {
    double sum = 0;
    std::size_t summed = 0;
    for (const std::int64_t rank : thinned_ranks(static_cast<std::int64_t>(row.shares.size()), kMostCsvRanks)) {
      while (summed < static_cast<std::size_t>(rank)) sum += row.shares[summed++];
      lines += fmt::format("{},{},{:.9g},{:.9g}\n", row.name(), rank, row.shares[summed - 1], sum);
    }
  }
  return lines;
}

}  // namespace engram
