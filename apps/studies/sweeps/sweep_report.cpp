#include "apps/studies/sweeps/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/report/text_table.hpp"
#include "apps/run/config/config_values.hpp"
#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/score.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

std::string mean_of(const std::optional<Spread>& spread, int digits) {
  return spread ? fmt::format("{:.{}f}", spread->mean, digits) : "-";
}

std::string range_of(const std::optional<Spread>& spread, int digits) {
  return spread ? fmt::format("{:.{}f} to {:.{}f}", spread->least, digits, spread->most, digits) : "-";
}

std::string csv_number(const std::optional<double>& number, int digits) {
  return number ? fmt::format("{:.{}f}", *number, digits) : "";
}

std::string csv_spread(const std::optional<Spread>& spread, bool several) {
  if (!several) return csv_number(spread ? std::optional(spread->mean) : std::nullopt, 6);
  return spread ? fmt::format("{:.6f},{:.6f},{:.6f}", spread->mean, spread->least, spread->most) : ",,";
}

std::string csv_heading(std::string_view name, bool several) {
  return several ? fmt::format("{0},{0}_least,{0}_most", name) : std::string(name);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string list;
  for (const std::string& part : parts) list += (list.empty() ? "" : " ") + part;
  return list;
}

/// One for each memory, in the order of layers: "0.98 0.91".
template <class Memories, class Write>
std::string of_memories(const Memories& memories, const Write& write, std::string_view between = " ") {
  std::string list;
  for (const auto& memory : memories) {
    if (!list.empty()) list += between;
    list += write(memory);
  }
  return list;
}

struct ProductKeyColumn {
  const char *name, *heading;  ///< in files, in the table
  double ProductKeyFigures::*figure;
  Spread ProductKeySpread::*spread;
  double scale;  ///< in the table
  int digits;    ///< in the table
};
constexpr ProductKeyColumn kProductKeyColumns[] = {
    {"memory_usage", "usage %", &ProductKeyFigures::usage, &ProductKeySpread::usage, 100, 1},
    {"memory_top_usage", "top-1 %", &ProductKeyFigures::top_usage, &ProductKeySpread::top_usage, 100, 1},
    {"memory_kl", "KL", &ProductKeyFigures::kl, &ProductKeySpread::kl, 1, 3}};

std::string csv_memories(const VariantResult& variant, bool several) {
  std::string fields = "," + of_memories(variant.memories, [](const auto& memory) { return text(memory.layer); });
  for (const ProductKeyColumn& column : kProductKeyColumns) {
    const auto field = [&](double Spread::*number) {
      return "," + of_memories(variant.memories, [&](const ProductKeySpread& memory) {
               return fmt::format("{:.6f}", (memory.*column.spread).*number);
             });
    };
    fields += field(&Spread::mean);
    if (several) fields += field(&Spread::least) + field(&Spread::most);
  }
  return fields;
}

std::string csv_memories(const RunResult& result) {
  std::string fields = "," + of_memories(result.memories, [](const auto& memory) { return text(memory.layer); });
  for (const ProductKeyColumn& column : kProductKeyColumns)
    fields += "," + of_memories(result.memories, [&](const ProductKeyFigures& memory) {
                return fmt::format("{:.6f}", memory.*column.figure);
              });
  return fields;
}

json memories_json(const std::vector<ProductKeyFigures>& memories) {
  json list = json::array();
  for (const ProductKeyFigures& memory : memories)
    list.push_back(
        {{"layer", memory.layer}, {"usage", memory.usage}, {"top_usage", memory.top_usage}, {"kl", memory.kl}});
  return list;
}

/// What moves the tables of values: "adam lazy 0.001"; empty without tables.
std::string table_optimizer(const RunConfig& config) {
  if (!config.model.memories().any()) return "";
  const TableOptimizerOptions& table = config.optimizer.tables;
  if (table.kind != TableKind::adam) return fmt::format("{} {:g}", name_of(table.kind), table.rate);
  return fmt::format("{} {} {:g}", name_of(table.kind), name_of(table.mode), table.rate);
}

std::int64_t vocabulary_of(const SweepRun& run) { return run.config.model.vocabulary(); }

json number_or_null(const std::optional<double>& number) { return number ? json(*number) : json(); }

json spread_json(const std::optional<Spread>& spread) {
  return spread ? json{{"mean", spread->mean}, {"least", spread->least}, {"most", spread->most}} : json();
}

json run_json(const SweepRun& run, const RunResult& result) {
  const std::string score(score_name(run.kind));
  return {{"name", run.name},
          {"folder", run.folder.string()},
          {"seed", run.config.training.seed},
          {"outcome", name_of(result.outcome)},
          {"reason", result.reason},
          {"steps", result.step},
          {"tokens", result.step * run.config.training.batch * run.config.training.block},
          {"valid_" + score, number_or_null(result.valid)},
          {"best_step", result.best_step ? json(*result.best_step) : json()},
          {"best_valid_" + score, number_or_null(result.best_valid)},
          {"test_" + score, number_or_null(result.test)},
          {"best_test_" + score, number_or_null(result.best_test)},
          {"tokens_per_second", number_or_null(result.tokens_per_second)},
          {"inference_tokens_per_second", number_or_null(result.inference_tokens)},
          {"inference_words_per_second", number_or_null(result.inference_words)},
          {"mean_span_positions", number_or_null(result.mean_span)},
          {"released_mean_span_positions", number_or_null(result.released_span)},
          {"table_optimizer", table_optimizer(run.config)},
          {"memories", memories_json(result.memories)}};
}

std::string described(const RunState& state) {
  switch (state.kind) {
    case RunState::Kind::fresh:
      return "new";
    case RunState::Kind::unfinished:
      return fmt::format("goes on at step {}", state.step);
    case RunState::Kind::finished:
      return "trained";
    case RunState::Kind::diverged:
      return fmt::format("diverged after step {}", state.step);
  }
  return "";
}

/// What the columns of the table are. `score`: its name.
std::string notes_of(const SweepOptions& options, std::string_view score, const std::vector<VariantResult>& variants,
                     bool memories) {
  const auto any = [&](std::optional<double> VariantResult::*number) {
    return std::ranges::any_of(variants, [number](const auto& variant) { return (variant.*number).has_value(); });
  };
  std::string lines = fmt::format(
      "\n{}: of the whole validation split after the last step,\n  {}\nbest: at the best checkpoint of the run\n",
      score,
      options.exact ? "of every token but the first (recurrent, of articles: of every token)"
                    : "in blocks of 8 streams (all_attention), segments of 10, or all articles");
  if (any(&VariantResult::inference_tokens))
    lines +=
        "tokens/s: of training; read/s: tokens that the trained model reads a second,\n  words/s: of the text; medians "
        "of "
        "rounds in which all variants took turns\n";
  if (std::ranges::any_of(variants, [](const auto& variant) { return variant.mean_span.has_value(); }))
    lines += "mean span: positions, mean over heads; released: the released models' average\n";
  if (memories)
    lines += fmt::format(
        "usage: slots that the memory read over the {} split; top-1: that were ever\n  a head's best; KL of the "
        "weights "
        "from even use, nats; several memories: by layer\n",
        options.test ? "test" : "validation");
  if (options.seeds.size() > 1)
    lines += fmt::format("{}: mean and range over {} seeds; parameters and tokens of one run\n", score,
                         options.seeds.size());
  return lines;
}

}  // namespace

std::string table_of(const SweepOptions& options, const std::vector<VariantResult>& variants) {
  const bool several = options.seeds.size() > 1;
  constexpr int kDigits = 4;
  std::vector<TableColumn> columns;
  const auto column = [&](std::string heading, bool left, auto cell) {
    columns.push_back({std::move(heading), {}, left});
    for (const VariantResult& variant : variants) columns.back().cells.push_back(cell(variant));
  };
  const auto score = [&](const std::string& heading, std::optional<Spread> VariantResult::*spread) {
    column(heading, false, [=](const VariantResult& variant) { return mean_of(variant.*spread, kDigits); });
    if (several)
      column("range", false, [=](const VariantResult& variant) { return range_of(variant.*spread, kDigits); });
  };
  column("variant", true, [](const VariantResult& variant) { return variant.name; });
  column("state", true,
         [](const VariantResult& variant) { return variant.state + (variant.best ? ", the best" : ""); });
  column("parameters", false, [](const VariantResult& variant) { return fmt::format("{}", variant.parameters); });
  column("steps", false, [](const VariantResult& variant) { return fmt::format("{}", variant.steps); });
  column("tokens", false, [](const VariantResult& variant) { return fmt::format("{}", variant.tokens); });
  const std::string name(score_name(variants.front().kind));
  score("valid " + name, &VariantResult::valid);
  score("best valid", &VariantResult::best_valid);
  if (options.test) score("test " + name, &VariantResult::test);
  if (options.test) score("best test", &VariantResult::best_test);
  column("tokens/s", false, [](const VariantResult& variant) { return mean_of(variant.tokens_per_second, 0); });
  const auto rate = [&](const char* heading, std::optional<double> VariantResult::*number) {
    if (std::ranges::any_of(variants, [number](const auto& variant) { return (variant.*number).has_value(); }))
      column(heading, false,
             [number](const VariantResult& variant) { return variant.*number ? csv_number(variant.*number, 0) : "-"; });
  };
  rate("read/s", &VariantResult::inference_tokens);
  rate("words/s", &VariantResult::inference_words);
  column("mean span", false, [](const VariantResult& variant) { return mean_of(variant.mean_span, 1); });
  column("released", false, [](const VariantResult& variant) { return mean_of(variant.released_span, 1); });
  const bool memories = std::ranges::any_of(variants, [](const auto& variant) { return !variant.memories.empty(); });
  for (const ProductKeyColumn& shown : kProductKeyColumns) {
    if (!memories) break;
    const auto cell = [&](const VariantResult& variant, auto write) {
      return variant.memories.empty() ? "-" : of_memories(variant.memories, write, " / ");
    };
    column(shown.heading, false, [&](const VariantResult& variant) {
      return cell(variant, [&](const ProductKeySpread& memory) {
        return fmt::format("{:.{}f}", (memory.*shown.spread).mean * shown.scale, shown.digits);
      });
    });
    if (several)
      column("range", false, [&](const VariantResult& variant) {
        return cell(variant, [&](const ProductKeySpread& memory) {
          const Spread& spread = memory.*shown.spread;
          return fmt::format("{:.{}f} to {:.{}f}", spread.least * shown.scale, shown.digits, spread.most * shown.scale,
                             shown.digits);
        });
      });
  }
  std::erase_if(columns, [](const TableColumn& one) {
    return std::ranges::all_of(one.cells, [](const std::string& cell) { return cell == "-"; });
  });
  return aligned(columns) + notes_of(options, name, variants, memories);
}

std::string csv_of(const SweepOptions& options, const std::vector<VariantResult>& variants) {
  const bool several = options.seeds.size() > 1;
  std::string lines = "variant,overrides,parameters,steps,tokens";
  const std::string score(score_name(variants.front().kind));
  for (const char* name : {"valid_", "best_valid_", "test_", "best_test_"})
    if (options.test || std::string_view(name).find("test") == std::string_view::npos)
      lines += "," + csv_heading(name + score, several);
  lines +=
      ",tokens_per_second,inference_tokens_per_second,inference_words_per_second,mean_span_positions,"
      "released_mean_span_positions,memory_layers";
  for (const ProductKeyColumn& column : kProductKeyColumns) lines += "," + csv_heading(column.name, several);
  lines += ",state,best\n";
  for (const VariantResult& variant : variants) {
    lines += fmt::format("{},{},{},{},{},{},{}", csv_field(variant.name), csv_field(joined(variant.overrides)),
                         variant.parameters, variant.steps, variant.tokens, csv_spread(variant.valid, several),
                         csv_spread(variant.best_valid, several));
    if (options.test) lines += "," + csv_spread(variant.test, several) + "," + csv_spread(variant.best_test, several);
    lines +=
        fmt::format(",{},{},{},{},{}{},{},{}\n", variant.tokens_per_second ? mean_of(variant.tokens_per_second, 1) : "",
                    csv_number(variant.inference_tokens, 1), csv_number(variant.inference_words, 1),
                    variant.mean_span ? mean_of(variant.mean_span, 4) : "",
                    variant.released_span ? mean_of(variant.released_span, 4) : "", csv_memories(variant, several),
                    csv_field(variant.state), variant.best ? 1 : 0);
  }
  return lines;
}

std::string csv_of(const SweepOptions& options, const std::vector<SweepRun>& runs,
                   const std::vector<RunResult>& results) {
  std::string lines = fmt::format(
      "variant,seed,folder,parameters,steps,tokens,valid_{0},best_step,best_valid_{0},test_{0},best_test_{0},"
      "tokens_per_second,inference_tokens_per_second,inference_words_per_second,mean_span_positions,"
      "released_mean_span_positions,memory_layers",
      score_name(runs.front().kind));
  for (const ProductKeyColumn& column : kProductKeyColumns) lines += text(",", column.name);
  lines += ",token_kind,vocabulary,table_optimizer,outcome\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const SweepRun& run = runs[i];
    const RunResult& result = results[i];
    lines += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}{},{},{},{},{}\n",
        csv_field(options.variants[run.variant].name), run.config.training.seed, csv_field(run.name), run.parameters,
        result.step, result.step * run.config.training.batch * run.config.training.block, csv_number(result.valid, 6),
        result.best_step ? fmt::format("{}", *result.best_step) : "", csv_number(result.best_valid, 6),
        csv_number(result.test, 6), csv_number(result.best_test, 6), csv_number(result.tokens_per_second, 1),
        csv_number(result.inference_tokens, 1), csv_number(result.inference_words, 1), csv_number(result.mean_span, 4),
        csv_number(result.released_span, 4), csv_memories(result), name_of(run.kind), vocabulary_of(run),
        csv_field(table_optimizer(run.config)), name_of(result.outcome));
  }
  return lines;
}

json json_of(const SweepOptions& options, const std::vector<SweepRun>& runs, const std::vector<RunResult>& results,
             const std::vector<std::string>& warnings) {
  json object{{"config", options.config.string()},
              {"data", options.data.string()},
              {"out", options.out.string()},
              {"seeds", options.seeds},
              {"score", score_name(runs.front().kind)},
              {"evaluation", options.exact ? "exact" : "paper"},
              {"token_kind", name_of(runs.front().kind)},
              {"vocabulary", vocabulary_of(runs.front())},
              {"warnings", warnings},
              {"variants", json::array()}};
  const std::string score(score_name(runs.front().kind));
  const std::vector<VariantResult> variants = collect_variants(options, runs, results);
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    const VariantResult& collected = variants[variant];
    json one{{"name", collected.name},
             {"overrides", collected.overrides},
             {"parameters", collected.parameters},
             {"steps", collected.steps},
             {"tokens", collected.tokens},
             {"valid_" + score, spread_json(collected.valid)},
             {"best_valid_" + score, spread_json(collected.best_valid)},
             {"test_" + score, spread_json(collected.test)},
             {"best_test_" + score, spread_json(collected.best_test)},
             {"tokens_per_second", spread_json(collected.tokens_per_second)},
             {"inference_tokens_per_second", number_or_null(collected.inference_tokens)},
             {"inference_words_per_second", number_or_null(collected.inference_words)},
             {"mean_span_positions", spread_json(collected.mean_span)},
             {"released_mean_span_positions", spread_json(collected.released_span)},
             {"state", collected.state},
             {"best", collected.best},
             {"runs", json::array()}};
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i].variant == variant) one["runs"].push_back(run_json(runs[i], results[i]));
    object["variants"].push_back(std::move(one));
  }
  return object;
}

std::string table_of(const std::vector<SweepRun>& runs) {
  std::vector<TableColumn> columns{
      {"run", {}, true}, {"parameters", {}, false}, {"steps", {}, false}, {"tokens", {}, false}, {"folder", {}, true}};
  for (const SweepRun& run : runs) {
    const std::string cells[] = {run.name, fmt::format("{}", run.parameters),
                                 fmt::format("{}", run.config.total_steps()), fmt::format("{}", run.tokens()),
                                 described(run.state)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return aligned(columns);
}

json json_of(const SweepOptions& options, const std::vector<SweepRun>& runs, const std::vector<std::string>& warnings) {
  json object{{"config", options.config.string()},
              {"data", options.data.string()},
              {"out", options.out.string()},
              {"warnings", warnings},
              {"runs", json::array()}};
  for (const SweepRun& run : runs)
    object["runs"].push_back({{"name", run.name},
                              {"variant", options.variants[run.variant].name},
                              {"overrides", options.variants[run.variant].overrides},
                              {"seed", run.config.training.seed},
                              {"parameters", run.parameters},
                              {"steps", run.config.total_steps()},
                              {"tokens", run.tokens()},
                              {"state", described(run.state)}});
  return object;
}

}  // namespace engram
