#include "apps/run/weights/run_to_export.hpp"

#include <system_error>

#include "core/error.hpp"

namespace engram {

RunToExport read_run_to_export(const std::filesystem::path& run, CheckpointKind kind, const std::filesystem::path& out,
                               ModelFamily family) {
  const CheckpointFile file(find_checkpoint(run, kind));
  std::error_code ignored;
  if (std::filesystem::equivalent(out, file.path(), ignored))
    throw UsageError(text("export: --out must be another file than the checkpoint that is exported, got '",
                          out.string(), "' for both"));
  RunToExport found{.facts = read_facts(file), .file = text("'", file.path().string(), "'")};
  const ModelFamily own = found.facts.config.model.family;
  if (own != family)
    throw UsageError(
        text("export: the model must be of family ", name_of(family), ", got ", name_of(own), " in ", found.file));
  return found;
}

}  // namespace engram
