#pragma once
/// Sweeps of tiny models over a small text.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/studies/sweeps/sweep.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"

namespace engram::harness {

/// Data long enough for the eight streams of an evaluation.
struct SweepBench : RunFolder {
  SweepBench() : RunFolder(20000) { put_file(config(), small_config()); }
  std::filesystem::path config() const { return *this / "config.toml"; }

  SweepOptions options(std::string_view out, const std::vector<std::string>& vary,
                       const std::vector<std::string>& variants = {}, std::vector<std::uint64_t> seeds = {}) const {
    SweepOptions made;
    made.config = config();
    made.data = data();
    made.out = *this / out;
    made.variants = plan_variants(vary, variants, {});
    made.seeds = std::move(seeds);
    made.threads = 1;
    return made;
  }
  Arguments command(std::string_view out, const Arguments& more) const {
    Arguments arguments{"sweep", "--config", config().string(),     "--data", data().string(), "--threads",
                        "1",     "--out",    (*this / out).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

inline const SweepBench& bench() {
  static const SweepBench made;
  return made;
}

inline std::vector<RunResult> run_all(const SweepOptions& options, const std::function<bool()>& stop = never()) {
  const data::DataSet data = data::DataSet::open(options.data);
  OneRank alone;
  return run_sweep(options, data, prepare_runs(options, data), stop, alone);
}

inline std::vector<SweepRun> prepared(const SweepOptions& options) {
  return prepare_runs(options, data::DataSet::open(options.data));
}

/// The bytes of the newest one.
inline std::string checkpoint(const std::filesystem::path& run) {
  return get_file(checkpoint_path(run, CheckpointKind::newest));
}

}  // namespace engram::harness
