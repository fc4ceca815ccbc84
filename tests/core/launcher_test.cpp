#include "core/launcher.hpp"

#include <map>
#include <string>

#include "tests/harness/catch.hpp"

namespace engram::launcher_test {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<LaunchedRank> launched_in(const Environment& environment) {
  return launched_rank([&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

/// "2 of 4 by mpirun"; "alone".
std::string described(const Environment& environment) {
  const auto launched = launched_in(environment);
  if (!launched) return "alone";
  return std::to_string(launched->rank) + " of " + std::to_string(launched->size) + " by " + launched->launcher;
}

TEST_CASE("launcher: what each sets for its processes", "[ranks]") {
  CHECK(described({}) == "alone");
  CHECK(described({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == "2 of 4 by mpirun");
  CHECK(described({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}) == "0 of 2 by mpirun or srun");
  CHECK(described({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_ID", "0"}}) == "3 of 8 by srun");
  CHECK(described({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}) == "0 of 1 by mpirun");
}

TEST_CASE("launcher: a program that is started alone inside an allocation is one process", "[ranks]") {
  // In the script of a batch of four tasks, and in a shell of salloc, which is a step of Slurm's own.
  const Environment batch{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"},  {"SLURM_NPROCS", "4"},
                          {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NNODES", "2"}};
  CHECK(described(batch) == "alone");
  Environment shell = batch;
  shell["SLURM_STEP_NUM_TASKS"] = "4";
  shell["SLURM_STEP_ID"] = "4294967290";
  CHECK(described(shell) == "alone");
}

TEST_CASE("launcher: the innermost one counts", "[ranks]") {
  // mpirun in a script that srun started, with one task a host.
  CHECK(described({{"SLURM_PROCID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "2"},
                   {"SLURM_STEP_ID", "0"},
                   {"OMPI_COMM_WORLD_RANK", "5"},
                   {"OMPI_COMM_WORLD_SIZE", "6"}}) == "5 of 6 by mpirun");
}

TEST_CASE("launcher: what is no rank is none", "[ranks]") {
  CHECK(described({{"PMI_RANK", "2"}}) == "alone");
  CHECK(described({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}) == "alone");
  CHECK(described({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}) == "alone");
  CHECK(described({{"PMI_RANK", "1x"}, {"PMI_SIZE", "2"}}) == "alone");
  CHECK(described({{"PMI_RANK", ""}, {"PMI_SIZE", "2"}}) == "alone");
}

}  // namespace
}  // namespace engram::launcher_test
