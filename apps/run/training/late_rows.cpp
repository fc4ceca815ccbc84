#include "apps/run/training/late_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/run/model/checkpoint_format.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::filesystem::path late_rows_path(const std::filesystem::path& checkpoint) {
  return checkpoint.parent_path() / "late-rows.safetensors";
}

/// The file, if it is of this step.
std::optional<CheckpointFile> open_late_rows(const std::filesystem::path& checkpoint, std::int64_t step) {
  if (!std::filesystem::exists(late_rows_path(checkpoint))) return std::nullopt;
  CheckpointFile file(late_rows_path(checkpoint));
  const auto found = file.metadata().find(metadata_keys::kStep);
  if (found == file.metadata().end() || found->second != text(step)) return std::nullopt;
  return file;
}

std::vector<NamedTensor> late_rows_of(const TrainingSession& session) {
  std::vector<NamedTensor> rows;
  if (const TableOptimizer* const tables = session.trainer.optimizer().tables())
    tables->visit_late_rows(
        [&rows](const std::string& name, const Tensor& tensor, const std::optional<Division>& division) {
          rows.push_back({name, tensor, division});
        });
  return rows;
}

}  // namespace

void save_late_rows(const std::filesystem::path& checkpoint, const TrainingSession& session) {
  const std::vector<NamedTensor> rows = late_rows_of(session);
  Communicator& ranks = session.runtime.ranks();
  if (rows.empty()) {
    if (ranks.leads()) remove_late_rows(checkpoint);
    return;
  }
  save_checkpoint(late_rows_path(checkpoint), session.runtime.backend(), rows,
                  {{std::string(metadata_keys::kStep), text(session.trainer.steps())}}, {.only_finite = true}, ranks);
}

void remove_late_rows(const std::filesystem::path& checkpoint) {
  std::error_code ignored;  // one that stays is of another step
  std::filesystem::remove(late_rows_path(checkpoint), ignored);
}

std::string late_rows_beside(const std::filesystem::path& checkpoint, std::int64_t step) {
  const std::optional<CheckpointFile> file = open_late_rows(checkpoint, step);
  return file ? file->checksum() : "none";
}

void load_late_rows(const std::filesystem::path& checkpoint, TrainingSession& session) {
  const std::vector<NamedTensor> rows = late_rows_of(session);
  if (rows.empty()) return;
  const std::optional<CheckpointFile> file = open_late_rows(checkpoint, session.trainer.steps());
  if (!file) return;
  // Other beta1 and beta2 have a clock of another length.
  const bool fits = std::ranges::all_of(
      rows, [&file](const NamedTensor& row) { return file->has(row.name) && file->at(row.name).shape == row.shape(); });
  if (fits) file->load(session.runtime.backend(), rows, {}, session.runtime.ranks().rank());
}

}  // namespace engram
