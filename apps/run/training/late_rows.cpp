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

void load_late_rows(const std::filesystem::path& checkpoint, TrainingSession& session) {
  const std::vector<NamedTensor> rows = late_rows_of(session);
  if (rows.empty() || !std::filesystem::exists(late_rows_path(checkpoint))) return;
  const CheckpointFile file(late_rows_path(checkpoint));
  const auto step = file.metadata().find(metadata_keys::kStep);
  if (step == file.metadata().end() || step->second != text(session.trainer.steps())) return;
  // Other beta1 and beta2 have a clock of another length.
  const bool fits = std::ranges::all_of(
      rows, [&file](const NamedTensor& row) { return file.has(row.name) && file.at(row.name).shape == row.shape(); });
  if (fits) file.load(session.runtime.backend(), rows, {}, session.runtime.ranks().rank());
}

}  // namespace engram
