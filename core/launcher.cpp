#include "core/launcher.hpp"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace engram {
namespace {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* size;
};
/// The innermost launcher first: mpirun may run inside a step of srun, whose variables its processes inherit.
/// MPICH's and Intel's hydra and srun with PMI-2 set the second pair. srun sets the last one in every step; sbatch and
/// salloc set a rank, but no tasks of a step.
constexpr LauncherVariables kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpirun or srun", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};
/// Steps that Slurm makes by itself have numbers from here on: the script of a batch, a shell of salloc.
constexpr std::int64_t kFirstOwnStep = 0xfffffff0;

std::optional<std::int64_t> number_in(const EnvironmentLookup& lookup, const char* name) {
  const char* const value = lookup(name);
  if (value == nullptr) return std::nullopt;
  const char* const end = value + std::strlen(value);
  std::int64_t number = 0;
  const auto [stopped, error] = std::from_chars(value, end, number);
  if (error != std::errc() || stopped != end || number < 0 || number > 0xffffffff) return std::nullopt;
  return number;
}

}  // namespace

std::optional<LaunchedRank> launched_rank(const EnvironmentLookup& lookup) {
  for (const LauncherVariables& variables : kLaunchers) {
    const std::optional<std::int64_t> rank = number_in(lookup, variables.rank),
                                      size = number_in(lookup, variables.size);
    if (!rank || !size || *rank >= *size || *size > (1 << 24)) continue;
    if (std::strcmp(variables.launcher, "srun") == 0 &&
        number_in(lookup, "SLURM_STEP_ID").value_or(kFirstOwnStep) >= kFirstOwnStep)
      continue;
    return LaunchedRank{
        .launcher = variables.launcher, .rank = static_cast<int>(*rank), .size = static_cast<int>(*size)};
  }
  return std::nullopt;
}

std::optional<LaunchedRank> launched_rank() {
  return launched_rank([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace engram
