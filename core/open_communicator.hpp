#pragma once
/// Which ranks this process is one of.

#include <memory>

#include "core/communicator.hpp"

namespace engram {

/// How an implementation is made. `seconds`: the deadline of Transfer::wait() and of the functions on numbers of the
/// host. Returns nullptr where the process was not started as one of several.
using CommunicatorFactory = std::unique_ptr<Communicator> (*)(double seconds);

/// Called by static initialisers of implementations; returns true.
bool register_communicator(CommunicatorFactory factory);

/// The ranks that a launcher (mpirun, srun) started this process as one of; OneRank where none did. To be called once,
/// before other threads begin. Where a launcher started several processes it throws UsageError, alike in all of them,
/// when this build has no library for them, or another one than the launcher; and NotAvailable when this machine has
/// not the build's library.
std::unique_ptr<Communicator> open_communicator(double seconds);

}  // namespace engram
