/// What a run's folder holds, and whether it is this run's (sweep_runs.hpp).

#include <system_error>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/config/config_review.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/studies/sweeps/sweep_runs.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const SweepRun& run, std::string_view what) {
  throw UsageError(text("sweep: the folder '", run.folder.string(), "' of variant '", run.name,
                        "' must be new or hold ", "the same run, got ", what,
                        "\n  another --out, or removing this folder, begins anew"));
}

/// A run that was killed before it began: its config.toml had not taken its place yet.
bool has_not_begun(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : list_folder(folder, ignored)) {
    const fs::path name = entry.path().filename();
    if (name != "lock" && name != "config.toml.partial") return false;
  }
  return true;
}

void compare(const SweepRun& run, const RunConfig& before) {
  std::string changes;
  for (const ConfigDifference& difference : config_differences(before, run.config))
    changes += text("\n  ", difference.key, ": ", difference.before, " -> ", difference.after);
  if (!changes.empty()) refuse(run, "another config" + changes);
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

RunState inspect_run(const SweepRun& run, DType dtype, const data::DataSet& data) {
  const fs::path written = run.folder / "config.toml", metrics = run.folder / "metrics.jsonl";
  const fs::path newest = checkpoint_path(run.folder, CheckpointKind::newest);
  std::error_code ignored;
  if (!is_there(run.folder) || (fs::is_directory(run.folder, ignored) && has_not_begun(run.folder))) return {};
  if (!is_there(written)) refuse(run, "one without a config.toml");
  compare(run, parse_run_config(data::read_bytes(written), text("'", written.string(), "'")));

  RunState state;
  if (is_there(newest)) {
    const CheckpointFile file(newest);
    const CheckpointFacts facts = read_facts(file);
    compare(run, facts.config);
    if (facts.dtype != dtype) refuse(run, text("one with parameters in ", facts.dtype, ", not ", dtype));
    const auto hash = file.metadata().find(metadata_keys::kData);
    if (facts.vocabulary.hash() != data.vocabulary().hash() ||
        (hash != file.metadata().end() && hash->second != data::hash_text(data.hash())))
      refuse(run, text("one that was trained on other data than '", data.folder().string(), "'"));
    state.step = facts.step;
    state.kind = facts.step >= last_step_of(file, run.config) ? RunState::Kind::finished : RunState::Kind::unfinished;
  }
  if (!is_there(metrics)) return state;
  const RunEnd end = read_run_end(metrics);
  if (end.event != "diverged") return state;
  return {RunState::Kind::diverged, end.step, end.reason};
}

}  // namespace engram
