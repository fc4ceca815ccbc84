#include "apps/studies/cost/count_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/product_key_cost.hpp"
#include "apps/run/cost/recurrent_cost.hpp"
#include "apps/run/cost/training_state.hpp"
#include "apps/run/cost/transformer_xl_cost.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// Later roles are shown where a model has them; of recurrent models all are.
constexpr auto kPlainRoles = static_cast<std::size_t>(ParameterRole::output);

/// The shortest span, two usual means of trained models, and the longest; a fixed span has only the last.
CostTable costs_of(const AllAttentionOptions& model, const TrainingOptions& training,
                   const std::vector<double>& cluster_shares) {
  std::vector<std::int64_t> windows;
  if (model.span != SpanKind::fixed)
    for (const std::int64_t window : {model.ramp, std::int64_t{256}, std::int64_t{1024}})
      if (window < model.max_span) windows.push_back(window);
  windows.push_back(model.max_span);
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  CostTable table{.positions = "mean span, positions", .json_name = "mean_span_positions", .rows = {}};
  for (const std::int64_t window : windows) {
    const CostSetting setting{static_cast<double>(window), training.block, training.batch, cluster_shares};
    table.rows.push_back(
        {window, evaluation_flops(model, setting.window, cluster_shares), training_flops(model, setting).total()});
  }
  return table;
}

/// The memory of training, and one four times as long, as the papers evaluate with.
CostTable costs_of(const TransformerXlOptions& model, const TrainingOptions& training,
                   const std::vector<double>& cluster_shares) {
  CostTable table{.positions = "memory, positions", .json_name = "memory_positions", .rows = {}};
  const XlCostSetting setting{.segment = training.block + training.extension,
                              .extension = training.extension,
                              .batch = training.batch,
                              .cluster_shares = cluster_shares};
  for (const std::int64_t factor : {1, 4}) {
    TransformerXlOptions with = model;
    with.memory *= factor;
    if (factor == 1 || with.memory > 0)
      table.rows.push_back({with.memory, cached_flops(with, setting).total(),
                            forward_flops(with, setting).total() + backward_flops(with, setting).total()});
  }
  return table;
}

/// The window of training, and the longest that the model can read.
CostTable costs_of(const ProductKeyTransformerOptions& model, const TrainingOptions& training,
                   const std::vector<double>&) {
  CostTable table{.positions = "window, positions", .json_name = "window_positions", .rows = {}};
  for (const std::int64_t window : {training.block, model.position_rows})
    if (table.rows.empty() || window > training.block)
      table.rows.push_back({window, forward_flops(model, window), training_flops(model, window).total()});
  return table;
}

/// One row: a state costs the same wherever it is.
CostTable costs_of(const RecurrentOptions& model, const TrainingOptions&, const std::vector<double>& cluster_shares) {
  return {.positions = "earlier positions",
          .json_name = "earlier_positions",
          .rows = {{model.readout_reach(), forward_flops(model, cluster_shares).total(),
                    training_flops(model, cluster_shares).total()}}};
}

/// Lines about memories; none where there are none.
std::optional<ValueTables> tables_of(const RunConfig& config) {
  const ProductKeyOptions& memories = config.model.memories();
  if (!memories.any()) return std::nullopt;
  const std::int64_t width = config.model.width(), layers = config.model.layers();
  const std::int64_t tokens = config.training.batch * (config.training.block + config.training.extension);
  ValueTables tables{.sizes = table_sizes(memories, width, layers, config.optimizer.tables),
                     .traffic = table_traffic(memories, width, layers, config.optimizer.tables, tokens),
                     .optimizer = config.optimizer.tables,
                     .dtype = memories.value_dtype};
  tables.gathered_bytes = tables.traffic.gathered_bytes / static_cast<double>(tokens);
  return tables;
}

/// Tables that are not trained have no state, and no step moves their rows.
void leave_out_frozen(ValueTables& tables, const ParameterStore& store) {
  for (const auto& [name, parameter] : store.parameters())
    if (parameter->gradient_kind() == Gradient::rows && parameter->frozen()) ++tables.frozen;
  tables.sizes.state_bytes -= tables.sizes.state_bytes / tables.sizes.tables * tables.frozen;
}

nlohmann::json tables_json(const ValueTables& tables) {
  nlohmann::json object{{"memories", tables.sizes.memories},
                        {"tables", tables.sizes.tables},
                        {"slots", tables.sizes.rows},
                        {"value_width", tables.sizes.row_numbers},
                        {"value_dtype", name_of(tables.dtype)},
                        {"value_bytes", tables.sizes.value_bytes},
                        {"optimizer", name_of(tables.optimizer.kind)},
                        {"optimizer_state_bytes", tables.sizes.state_bytes},
                        {"touched_rows_per_step", tables.traffic.touched},
                        {"touched_share", tables.touched_share()},
                        {"gathered_bytes_per_token", tables.gathered_bytes}};
  if (tables.frozen > 0) object["frozen_tables"] = tables.frozen;
  if (tables.optimizer.kind == TableKind::adam) object["mode"] = name_of(tables.optimizer.mode);
  return object;
}

std::string tables_lines(const ValueTables& tables) {
  const bool adam = tables.optimizer.kind == TableKind::adam;
  std::string lines = fmt::format(
      "{:<14} {:>14}  in {} of {} numbers, read by {}\n", "memory slots", tables.sizes.tables * tables.sizes.rows,
      tables.sizes.tables == 1 ? "one table" : fmt::format("{} tables", tables.sizes.tables), tables.sizes.row_numbers,
      tables.sizes.memories == 1 ? "one memory" : fmt::format("{} memories", tables.sizes.memories));
  lines += fmt::format("{:<14} {:>14}  bytes: {}\n", "values", tables.sizes.value_bytes, name_of(tables.dtype));
  lines += fmt::format("{:<14} {:>14}  bytes: state of {}{}{}\n", "", tables.sizes.state_bytes,
                       name_of(tables.optimizer.kind), adam ? ", " : "", adam ? name_of(tables.optimizer.mode) : "");
  if (tables.frozen > 0)
    lines += fmt::format("{:<14} {:>14}  of the tables, {} numbers, without state (training.freeze)\n", "frozen",
                         tables.frozen, tables.frozen * tables.sizes.rows * tables.sizes.row_numbers);
  lines += fmt::format("{:<14} {:>14.0f}  rows, {:.1f}%, in a training step whose tokens read slots at random\n",
                       "touched", tables.traffic.touched, 100 * tables.touched_share());
  lines += fmt::format("{:<14} {:>14.0f}  bytes of values a token\n\n", "gathered", tables.gathered_bytes);
  return lines;
}

constexpr std::int64_t kStoredBytes = 4;  // of a parameter in f32

}  // namespace

CountReport count_report(const RunConfig& config, const std::optional<data::TokenView>& training) {
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  CountReport report;
  report.family = config.model.family;
  report.vocabulary = config.model.vocabulary();
  report.parameters = count_parameters(*model);
  if (const std::vector<std::int64_t>& cutoffs = config.model.cutoffs(); !cutoffs.empty())
    report.cluster_shares =
        training ? counted_shares(cutoffs, *training) : assumed_shares(cutoffs, config.model.vocabulary());
  report.costs = with_own_options(
      config.model, [&](const auto& own) { return costs_of(own, config.training, report.cluster_shares); });
  report.tables = tables_of(config);
  ParameterStore store;
  collect(*model, store);
  freeze_parameters(store, config.training.freeze);
  if (report.tables) leave_out_frozen(*report.tables, store);
  report.bytes_per_parameter = 4 * values_per_parameter(config.optimizer.kind);
  report.state_bytes = training_state_bytes(report.parameters.total,
                                            report.tables ? report.tables->sizes : TableSizes(), config.optimizer.kind);
  for (const GroupLayout& group : store.layout(DType::f32, true))
    for (const Parameter* parameter : group.parameters) report.frozen += parameter->shape().count();
  report.state_bytes -= report.frozen * (report.bytes_per_parameter - kStoredBytes);
  report.pieces = config.training.split;
  report.sum_bytes = largest_rank_memory(rank_setting(config), store, 1).sums;
  report.tokens_per_step = config.training.batch * config.training.block;
  return report;
}

std::string table_of(const CountReport& report) {
  std::string lines = fmt::format("{} (vocabulary of {})\n\n", report.config, report.vocabulary);
  lines += fmt::format("{:<14} {:>14}\n", "group", "parameters");
  for (std::size_t role = 0; role < kParameterRoles.size(); ++role)
    if (report.parameters.by_role[role] > 0 || (role <= kPlainRoles && report.family != ModelFamily::recurrent))
      lines += fmt::format("{:<14} {:>14}\n", kParameterRoles[role], report.parameters.by_role[role]);
  lines += fmt::format("{:<14} {:>14}  in {} tensors\n\n", "total", report.parameters.total, report.parameters.tensors);
  lines += fmt::format(
      "training state {:>14}  bytes: f32 values, gradients and optimiser state, {} bytes a parameter{}\n\n",
      report.state_bytes, report.bytes_per_parameter, report.tables ? "; tables as below, without gradients" : "");
  if (report.frozen > 0)
    lines += fmt::format("{:<14} {:>14}  of these parameters, without gradients and state: {} bytes each\n\n", "frozen",
                         report.frozen, kStoredBytes);
  if (report.sum_bytes > 0)
    lines += fmt::format("{:<14} {:>14}  bytes: copies of gradients, for sums over {} pieces of a batch\n\n", "sums",
                         report.sum_bytes, report.pieces);
  if (report.tables) lines += tables_lines(*report.tables);
  if (report.solved)
    lines +=
        fmt::format("{:<14} {:>14}  numbers in a state: {} parameters without the input's vectors, of {} wanted\n\n",
                    "solved width", report.solved->width, report.solved->parameters, report.solved->target);
  if (!report.cluster_shares.empty()) {
    lines += "words of the clusters";
    for (const double share : report.cluster_shares) lines += fmt::format(" {:.2f}%", 100 * share);
    lines +=
        !report.data.empty()
            ? fmt::format(" of the training split in '{}'\n\n", report.data)
            : fmt::format(", assuming frequencies in proportion to rank^-{} (--data counts them)\n\n", kRankExponent);
  }
  lines += fmt::format("{:<28} {:>14} {:>14} {:>14}\n", "arithmetic", "evaluation", "training", "training");
  lines += fmt::format("{:<28} {:>14} {:>14} {:>14}\n", report.costs.positions, "MFLOP a token", "MFLOP a token",
                       "TFLOP a step");
  for (const CostRow& cost : report.costs.rows)
    lines += fmt::format("{:<28} {:>14.2f} {:>14.2f} {:>14.5g}\n", cost.positions, cost.evaluation / 1e6,
                         cost.training / 1e6, cost.training * static_cast<double>(report.tokens_per_step) / 1e12);
  lines += fmt::format("\na step has {} tokens", report.tokens_per_step);
  if (report.family == ModelFamily::all_attention)
    lines += "; engram spans RUN --cost says what a trained model's own spans cost";
  lines += '\n';
  if (report.ranks) lines += table_of(*report.ranks);
  if (report.memory) lines += table_of(*report.memory);
  return lines;
}

nlohmann::json json_of(const CountReport& report) {
  nlohmann::json object{{"config", report.config},
                        {"vocabulary", report.vocabulary},
                        {"tensors", report.parameters.tensors},
                        {"parameters", report.parameters.total},
                        {"training_state_bytes", report.state_bytes},
                        {"piece_sum_bytes", report.sum_bytes}};
  if (report.frozen > 0) object["frozen_parameters"] = report.frozen;
  for (std::size_t role = 0; role < kParameterRoles.size(); ++role)
    object["groups"][std::string(kParameterRoles[role])] = report.parameters.by_role[role];
  if (report.tables) object["tables"] = tables_json(*report.tables);
  if (!report.cluster_shares.empty()) {
    object["cluster_shares"] = report.cluster_shares;
    object["cluster_shares_from"] = !report.data.empty() ? "data" : "assumed word frequencies";
  }
  object["family"] = name_of(report.family);
  for (const CostRow& cost : report.costs.rows)
    object["flops_per_token"].push_back(
        {{report.costs.json_name, cost.positions}, {"evaluation", cost.evaluation}, {"training", cost.training}});
  object["tokens_per_step"] = report.tokens_per_step;
  if (report.solved)
    object["solved"] = {{"width", report.solved->width},
                        {"parameters_without_embedding", report.solved->parameters},
                        {"target", report.solved->target}};
  if (report.ranks) object["ranks"] = json_of(*report.ranks);
  if (report.memory) object["memory"] = json_of(*report.memory);
  return object;
}

}  // namespace engram
