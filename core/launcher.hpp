#pragma once
/// What a launcher of several processes (mpirun, srun) tells each of them by its environment.

#include <functional>
#include <optional>
#include <string>

namespace engram {

struct LaunchedRank {
  std::string launcher;  ///< for messages: "mpirun"
  int rank = 0;          ///< in [0, size)
  int size = 1;          ///< how many processes it started, at least 1
};

/// The value of a variable of the environment; nullptr: there is none.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// As what a launcher started this process; none where none did. Asked is what a launcher sets for each process that it
/// starts, not what a batch system sets for an allocation, inside which a program may be started alone.
std::optional<LaunchedRank> launched_rank(const EnvironmentLookup& lookup);
/// Of this process's environment.
std::optional<LaunchedRank> launched_rank();

}  // namespace engram
