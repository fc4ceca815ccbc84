#pragma once
/// The module with MPI, in builds that have it.

#include <memory>

#include "core/communicator.hpp"
#include "cpu/ranks/mpi_communicator.hpp"

namespace engram::cpu {

/// Loads it and begins MPI; once in a process. nullptr where no launcher started this process. Throws NotAvailable
/// where the module or its MPI cannot be loaded, UsageError where MPI does not see the processes that the launcher
/// started.
std::unique_ptr<Communicator> open_mpi(const MpiLimits& limits);

}  // namespace engram::cpu
