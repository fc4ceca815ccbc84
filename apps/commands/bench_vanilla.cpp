#include "apps/commands/bench_ways.hpp"

#include <filesystem>

#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/studies/bench/vanilla_bench.hpp"
#include "apps/studies/bench/vanilla_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {

Option* BenchVanillaArguments::add_to(Command& command) {
  Option* flag =
      command.add_flag("--against-vanilla", wanted,
                       "Transformer-XL with a memory against a window that is read again for every token, as in the "
                       "paper's table 9 [of bench-table-9]");
  command.add_option("--lengths", lengths, "attention lengths: 800,1800,2800,3800 are the paper's")
      ->delimiter(',')
      ->needs(flag)
      ->capture_default_str();
  return flag;
}

void bench_vanilla(const BenchVanillaArguments& arguments, const BenchOptions& shared) {
  if (shared.configs.size() > 1)
    throw UsageError(text("bench: --against-vanilla takes one --config, got ", shared.configs.size()));
  check_output_file("bench: --svg", shared.svg, {kSvgBeginning});
  const std::filesystem::path file =
      shared.configs.empty() ? shipped_config("bench/bench-table-9") : std::filesystem::path(shared.configs.front());
  VanillaBenchCase bench{file.stem().string(), load_run_config(file, shared.overrides)};
  if (shared.vocabulary != 0) bench.config.model.transformer_xl.vocabulary = shared.vocabulary;
  WorkProgress progress("timing " + bench.name);
  Runtime runtime(parse_device(shared.device), shared.threads, bench.config.training.seed);
  runtime.step().set_products(bench.config.training.products);
  const auto comparisons = bench_against_vanilla(bench, arguments.lengths, runtime, shared.steps);
  progress.end();
  if (shared.json) {
    nlohmann::json object = json_of(bench, comparisons, shared.steps);
    object["device"] = shared.device;
    print_json({{"against_vanilla", object}});
  } else {
    print_report(table_of(bench, comparisons, shared.steps));
  }
  if (!shared.svg.empty()) write_durably(shared.svg, svg_of(bench, comparisons));
}

}  // namespace engram
