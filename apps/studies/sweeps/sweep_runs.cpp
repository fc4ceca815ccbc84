#include "apps/studies/sweeps/sweep_runs.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>

#include "apps/data/files/read_file.hpp"
#include "apps/report/csv_table.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/training/session.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"

namespace engram {
namespace {

std::string written(const std::vector<std::string>& overrides) {
  std::string list;
  for (const std::string& override : overrides) list += (list.empty() ? "" : ", ") + override;
  return list.empty() ? "the config as it is" : list;
}

/// What training and evaluating would refuse.
void check_data(const SweepOptions& options, const RunConfig& config, const data::DataSet& data) {
  make_reader(config, {data, "train"});
  if (options.exact) return;
  try {
    check_usual_evaluation(config, {data, "valid"});
    if (options.test) check_usual_evaluation(config, {data, "test"});
  } catch (const UsageError& error) {
    throw UsageError(text(error.what(), "\n  engram sweep has --exact too"));
  }
}

SweepRun make_run(const SweepOptions& options, const data::DataSet& data, std::size_t variant,
                  const std::uint64_t* seed) {
  const SweepVariant& described = options.variants[variant];
  SweepRun run{.variant = variant,
               .name = described.name,
               .overrides = options.overrides,
               .config = {},
               .folder = {},
               .parameters = 0,
               .state = {}};
  run.overrides.insert(run.overrides.end(), described.overrides.begin(), described.overrides.end());
  if (seed != nullptr) {
    if (std::ranges::any_of(described.overrides,
                            [](const std::string& override) { return override.starts_with("training.seed="); }))
      throw UsageError(
          text("sweep: seeds must be those of --seeds or of the variants, got both in '", described.name, "'"));
    run.name += text("-seed-", *seed);
    run.overrides.push_back(text("training.seed=", *seed));
  }
  run.folder = options.out / run.name;
  try {
    run.config = resolved_config(load_run_config(options.config, run.overrides), data);
    run.config.model.check_dtype(options.dtype, "sweep");
    run.kind = data.kind();
    check_data(options, run.config, data);
  } catch (const UsageError& error) {
    throw UsageError(
        text("sweep: variant '", described.name, "' (", written(described.overrides), "): ", error.what()));
  }
  run.parameters = count_parameters(*make_model(run.config.model)).total;
  run.state = inspect_run(run, options.dtype, data);
  return run;
}

/// Folders that runs.csv has and these runs have not, at most three by name; empty: none.
std::string runs_left_out(const std::filesystem::path& out, const std::vector<SweepRun>& runs) {
  constexpr std::size_t kNamed = 3;
  const std::filesystem::path file = out / "runs.csv";
  if (!is_there(file)) return "";
  const CsvTable table = parse_csv(data::read_bytes(file), text("'", file.string(), "'"));
  const std::size_t folder = table.column("folder");
  if (folder == table.names.size()) return "";
  std::vector<std::string> left;
  for (const std::vector<std::string>& row : table.rows)
    if (std::ranges::none_of(runs, [&](const SweepRun& run) { return run.name == row[folder]; }))
      left.push_back(row[folder]);
  std::string list;
  for (std::size_t i = 0; i < std::min(left.size(), kNamed); ++i) list += text(i == 0 ? "" : ", ", left[i]);
  return left.size() <= kNamed ? list : text(list, " and ", left.size() - kNamed, " more");
}

/// A folder without tables may be one of a sweep that was interrupted before they were written: there are runs in it.
void check_sweep_folder(const std::filesystem::path& out, const std::set<std::string>& names) {
  if (out.empty()) throw UsageError("sweep: --out must name the sweep's folder, got nothing");
  if (holds_run(out))
    throw UsageError(text("sweep: --out must be a new folder or that of a sweep, got a run's, '", out.string(),
                          "'\n  each run of a sweep gets a folder of its own in it"));
  if (is_there(out / "sweep.csv") || is_there(out / "runs.csv")) return;
  std::error_code ignored;
  std::set<std::string> foreign;
  for (const auto& entry : list_folder(out, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && !names.contains(name) && !name.ends_with(".csv.partial") && !holds_run(entry.path()))
      foreign.insert(name);
  }
  if (!foreign.empty())
    throw UsageError(text("sweep: --out must be a new or an empty folder, or that of a sweep, got '", out.string(),
                          "' with '", *foreign.begin(), "' in it\n  name another folder"));
}

}  // namespace

std::vector<SweepRun> prepare_runs(const SweepOptions& options, const data::DataSet& data) {
  std::vector<SweepRun> runs;
  std::set<std::string> folders;
  for (std::size_t variant = 0; variant < options.variants.size(); ++variant) {
    if (options.seeds.empty()) runs.push_back(make_run(options, data, variant, nullptr));
    for (const std::uint64_t& seed : options.seeds) runs.push_back(make_run(options, data, variant, &seed));
  }
  for (const SweepRun& run : runs)
    if (!folders.insert(run.name).second)
      throw UsageError(text("sweep: each run must have a folder of its own, got '", run.name, "' twice"));
  check_sweep_folder(options.out, folders);
  return runs;
}

std::vector<std::string> sweep_warnings(const SweepOptions& options, const std::vector<SweepRun>& runs) {
  std::vector<std::string> warnings;
  if (const std::string left = runs_left_out(options.out, runs); !left.empty())
    warnings.push_back(text("the tables in '", options.out.string(), "' will be without ", left,
                            ", which an earlier sweep trained there and this one does not name\n  give them again, or "
                            "another --out"));
  const bool same =
      std::ranges::all_of(runs, [&](const SweepRun& run) { return run.tokens() == runs.front().tokens(); });
  if (same) return warnings;
  std::string list;
  for (const SweepRun& run : runs) {
    if (!options.seeds.empty() && run.config.training.seed != options.seeds.front()) continue;
    const RunConfig& config = run.config;
    list += text("\n  ", options.variants[run.variant].name, ": ", run.tokens(), " tokens, ", config.total_steps(),
                 " steps of ", config.training.batch, " x ", config.training.block);
  }
  warnings.push_back(
      "the variants are not trained on the same number of tokens, so their figures do not compare directly" + list);
  return warnings;
}

}  // namespace engram
