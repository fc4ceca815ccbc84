#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/config_values.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/product_key_cost.hpp"
#include "apps/run/cost/recurrent_cost.hpp"
#include "apps/run/cost/solved_width.hpp"
#include "apps/run/cost/table_cost.hpp"
#include "apps/run/cost/training_state.hpp"
#include "apps/run/cost/transformer_xl_cost.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

struct CountArguments {
  std::string config, data;
  std::vector<std::string> overrides;
  std::int64_t vocabulary = 0, target = 0;
  bool json = false, solve = false;
};

/// Later roles are shown where a model has them; of recurrent models all are.
constexpr auto kPlainRoles = static_cast<std::size_t>(ParameterRole::output);

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
CostTable costs_of(const RecurrentOptions& model, const TrainingOptions&, const std::vector<double>&) {
  return {.positions = "earlier positions",
          .json_name = "earlier_positions",
          .rows = {{model.readout_reach(), forward_flops(model).total(), training_flops(model).total()}}};
}

/// The tables of values of a model with product-key memories.
struct Tables {
  TableSizes sizes;
  TableTraffic traffic;  ///< of a training step
  TableOptimizerOptions optimizer;
  DType dtype;
  double gathered_bytes = 0;  ///< per token of a forward pass, by all memories

  double touched_share() const { return traffic.touched / static_cast<double>(sizes.tables * sizes.rows); }
};

/// Nothing where there are no memories.
std::optional<Tables> tables_of(const RunConfig& config) {
  const ProductKeyOptions& memories = config.model.memories();
  if (!memories.any()) return std::nullopt;
  const std::int64_t width = config.model.width(), layers = config.model.layers();
  const std::int64_t tokens = config.training.batch * (config.training.block + config.training.extension);
  Tables tables{.sizes = table_sizes(memories, width, layers, config.optimizer.tables),
                .traffic = table_traffic(memories, width, layers, config.optimizer.tables, tokens),
                .optimizer = config.optimizer.tables,
                .dtype = memories.value_dtype};
  tables.gathered_bytes = tables.traffic.gathered_bytes / static_cast<double>(tokens);
  return tables;
}

/// Of --solve; nothing where it was not asked for.
std::optional<SolvedWidth> solved_of(const CountArguments& arguments, const ModelOptions& model) {
  if (!arguments.solve) return std::nullopt;
  if (model.family != ModelFamily::recurrent)
    throw UsageError(text("count: --solve must be for a model of family recurrent, got ", name_of(model.family)));
  return solve_width(model.recurrent, arguments.target);
}

nlohmann::json json_of(const Tables& tables) {
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
  if (tables.optimizer.kind == TableKind::adam) object["mode"] = name_of(tables.optimizer.mode);
  return object;
}

std::string lines_of(const Tables& tables) {
  const bool adam = tables.optimizer.kind == TableKind::adam;
  std::string lines = fmt::format(
      "{:<14} {:>14}  in {} of {} numbers, read by {}\n", "memory slots", tables.sizes.tables * tables.sizes.rows,
      tables.sizes.tables == 1 ? "one table" : fmt::format("{} tables", tables.sizes.tables), tables.sizes.row_numbers,
      tables.sizes.memories == 1 ? "one memory" : fmt::format("{} memories", tables.sizes.memories));
  lines += fmt::format("{:<14} {:>14}  bytes: {}\n", "values", tables.sizes.value_bytes, name_of(tables.dtype));
  lines += fmt::format("{:<14} {:>14}  bytes: state of {}{}{}\n", "", tables.sizes.state_bytes,
                       name_of(tables.optimizer.kind), adam ? ", " : "", adam ? name_of(tables.optimizer.mode) : "");
  lines += fmt::format("{:<14} {:>14.0f}  rows, {:.1f}%, in a training step whose tokens read slots at random\n",
                       "touched", tables.traffic.touched, 100 * tables.touched_share());
  lines += fmt::format("{:<14} {:>14.0f}  bytes of values a token\n\n", "gathered", tables.gathered_bytes);
  return lines;
}

void run_count(const CountArguments& arguments) {
  WorkProgress progress("counting");
  RunConfig config = load_run_config(arguments.config, arguments.overrides);
  if (arguments.vocabulary != 0) config.model.set_vocabulary(arguments.vocabulary);
  std::optional<data::DataSet> data;
  if (!arguments.data.empty()) {
    data.emplace(data::DataSet::open(arguments.data));
    if (config.model.vocabulary() == 0) config.model.set_vocabulary(data->vocabulary().size());
  }
  if (config.model.vocabulary() == 0)
    throw UsageError(text("count: '", arguments.config,
                          "' takes its vocabulary from the data\n  say how many symbols there are with --vocab N"));
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  const std::vector<std::int64_t>& cutoffs = config.model.cutoffs();
  std::vector<double> shares;
  if (!cutoffs.empty())
    shares = data ? counted_shares(cutoffs, data->split("train")) : assumed_shares(cutoffs, config.model.vocabulary());
  const ParameterCount count = count_parameters(*model);
  const CostTable costs =
      with_own_options(config.model, [&](const auto& own) { return costs_of(own, config.training, shares); });
  const int values = values_per_parameter(config.optimizer.kind);
  const std::optional<Tables> tables = tables_of(config);
  const TableSizes sizes = tables ? tables->sizes : TableSizes();
  const std::int64_t bytes = training_state_bytes(count.total, sizes, config.optimizer.kind);
  const std::int64_t tokens_per_step = config.training.batch * config.training.block;

  const std::optional<SolvedWidth> solved = solved_of(arguments, config.model);
  progress.end();

  if (arguments.json) {
    nlohmann::json object{{"config", arguments.config},
                          {"vocabulary", config.model.vocabulary()},
                          {"tensors", count.tensors},
                          {"parameters", count.total},
                          {"training_state_bytes", bytes}};
    for (std::size_t role = 0; role < kParameterRoles.size(); ++role)
      object["groups"][std::string(kParameterRoles[role])] = count.by_role[role];
    if (tables) object["tables"] = json_of(*tables);
    if (!shares.empty()) {
      object["cluster_shares"] = shares;
      object["cluster_shares_from"] = data ? "data" : "assumed word frequencies";
    }
    object["family"] = name_of(config.model.family);
    for (const CostRow& cost : costs.rows)
      object["flops_per_token"].push_back(
          {{costs.json_name, cost.positions}, {"evaluation", cost.evaluation}, {"training", cost.training}});
    object["tokens_per_step"] = tokens_per_step;
    if (solved)
      object["solved"] = {
          {"width", solved->width}, {"parameters_without_embedding", solved->parameters}, {"target", solved->target}};
    print_json(object);
    return;
  }
  std::string lines = fmt::format("{} (vocabulary of {})\n\n", arguments.config, config.model.vocabulary());
  lines += fmt::format("{:<14} {:>14}\n", "group", "parameters");
  for (std::size_t role = 0; role < kParameterRoles.size(); ++role)
    if (count.by_role[role] > 0 || (role <= kPlainRoles && config.model.family != ModelFamily::recurrent))
      lines += fmt::format("{:<14} {:>14}\n", kParameterRoles[role], count.by_role[role]);
  lines += fmt::format("{:<14} {:>14}  in {} tensors\n\n", "total", count.total, count.tensors);
  lines +=
      fmt::format("training state {:>14}  bytes: f32 values, gradients and optimiser state, {} bytes a parameter{}\n\n",
                  bytes, 4 * values, tables ? "; tables as below, without gradients" : "");
  if (tables) lines += lines_of(*tables);
  if (solved)
    lines +=
        fmt::format("{:<14} {:>14}  numbers in a state: {} parameters without the input's vectors, of {} wanted\n\n",
                    "solved width", solved->width, solved->parameters, solved->target);
  if (!shares.empty()) {
    lines += "words of the clusters";
    for (const double share : shares) lines += fmt::format(" {:.2f}%", 100 * share);
    lines +=
        data ? fmt::format(" of the training split in '{}'\n\n", arguments.data)
             : fmt::format(", assuming frequencies in proportion to rank^-{} (--data counts them)\n\n", kRankExponent);
  }
  lines += fmt::format("{:<28} {:>14} {:>14} {:>14}\n", "arithmetic", "evaluation", "training", "training");
  lines +=
      fmt::format("{:<28} {:>14} {:>14} {:>14}\n", costs.positions, "MFLOP a token", "MFLOP a token", "TFLOP a step");
  for (const CostRow& cost : costs.rows)
    lines += fmt::format("{:<28} {:>14.2f} {:>14.2f} {:>14.5g}\n", cost.positions, cost.evaluation / 1e6,
                         cost.training / 1e6, cost.training * static_cast<double>(tokens_per_step) / 1e12);
  lines += fmt::format("\na step has {} tokens", tokens_per_step);
  if (config.model.family == ModelFamily::all_attention)
    lines += "; engram spans RUN --cost says what a trained model's own spans cost";
  lines += '\n';
  print(lines);
}

}  // namespace

Command* add_count_command(Command& program) {
  Command* command = program.add_subcommand("count", "count a model's parameters, memory and arithmetic");
  const auto arguments = std::make_shared<CountArguments>();
  command->add_option("--config", arguments->config, "TOML file of the run")->required();
  command->add_key_settings(arguments->overrides, "override keys of the config: section.key=value");
  command->add_option("--vocab", arguments->vocabulary, "symbols of the vocabulary, instead of the config's")
      ->positive();
  command->add_option("--data", arguments->data,
                      "data folder: its vocabulary, and how many of its words are in each cluster (model.cutoffs)");
  Option* solve = command->add_flag("--solve", arguments->solve,
                                    "recurrent models: the width that has the number of parameters of an LSTM as wide "
                                    "as the input's vectors, which do not count");
  command->add_option("--target", arguments->target, "this number of parameters instead")->positive()->needs(solve);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_count(*arguments); });
  return command;
}

}  // namespace engram
