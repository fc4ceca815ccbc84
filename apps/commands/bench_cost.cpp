#include "apps/commands/bench_ways.hpp"

#include <filesystem>

#include "apps/commands/output.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/studies/bench/cost_group_report.hpp"
#include "apps/studies/bench/cost_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

BenchCase cost_case(const std::vector<std::int64_t>& spans, const BenchOptions& shared) {
  if (shared.configs.size() > 1)
    throw UsageError(text("bench: --cost must be of one config, got ", shared.configs.size()));
  const std::string file =
      shared.configs.empty() ? shipped_config("bench/bench-cost").string() : shared.configs.front();
  std::vector<std::string> overrides = shared.overrides;
  if (!shared.dtype.empty()) overrides.push_back("training.products=" + shared.dtype);
  BenchCase bench{std::filesystem::path(file).stem().string(), load_run_config(file, overrides), spans};
  if (shared.vocabulary != 0) bench.config.model.set_vocabulary(shared.vocabulary);
  return bench;
}

}  // namespace

Option* BenchCostArguments::add_to(Command& command) {
  Option* const flag = command.add_flag(
      "--cost", wanted,
      "what each kernel of a step asks of a card: --device simulated, built with ENGRAM_COST=ON [of bench-cost]");
  command.add_option("--kernel", kernel, "everything counted of one kernel, such as softmax_forward")->needs(flag);
  command.add_flag("--groups", groups, "milliseconds by what kernels are for")->needs(flag);
  command.add_option("--blocks", blocks, "of each launch, to stand for all [all]")->positive()->needs(flag);
  return flag;
}

void bench_cost(const BenchCostArguments& arguments, const std::vector<std::int64_t>& spans,
                const BenchOptions& shared) {
  if (arguments.groups && !arguments.kernel.empty())
    throw UsageError(text("bench: --groups must be of all kernels, got --kernel ", arguments.kernel));
  const BenchCase bench = cost_case(spans, shared);
  Runtime runtime(parse_device(shared.device), shared.threads, bench.config.training.seed);
  WorkProgress progress("counting");
  const CostResult result = count_costs(bench, runtime, arguments.blocks);
  progress.end();
  if (shared.json)
    print_json(json_of(bench, result));
  else if (arguments.groups)
    print_report(group_table_of(bench, result));
  else
    print_report(arguments.kernel.empty() ? table_of(bench, result) : listing_of(result, arguments.kernel));
}

}  // namespace engram
