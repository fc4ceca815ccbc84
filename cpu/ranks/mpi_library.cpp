#include "cpu/ranks/mpi_library.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/launcher.hpp"
#include "core/open_communicator.hpp"
#include "cpu/module_file.hpp"
#include "cpu/ranks/mpi_calls.hpp"

namespace engram::cpu {
namespace {

const EngramMpiCalls& load_mpi() {
  const std::string module = module_file("libengram_mpi.so");
  // Parts of MPI that it loads by itself look for its symbols among those of all.
  void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw NotAvailable(
        text("ranks: MPI must be there for several processes, got: ", dlerror(),
             "\n  the library of the MPI that Engram was built with is needed (Debian: openmpi-bin or mpich), "
             "and of Engram's packages engram-mpi"));
  const auto calls = reinterpret_cast<const EngramMpiCalls* (*)()>(dlsym(library, "engram_mpi_calls"));
  if (calls == nullptr || calls()->version != kMpiCallsVersion)
    throw NotAvailable(text("ranks: '", module, "' must be of this version of Engram, got another one"));
  return *calls();
}

}  // namespace

std::unique_ptr<Communicator> open_mpi(const MpiLimits& limits) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (!launched) return nullptr;
  // Without it MPI would end the process, in words of its own.
  if (launched->launcher == "srun" && std::getenv("PMIX_RANK") == nullptr)
    throw UsageError(text("ranks: srun must tell its ", launched->size,
                          " processes of each other, got none of the ways that MPI knows",
                          "\n  srun --mpi=pmix, or --mpi=pmi2 for MPICH; srun --mpi=list has the names"));
  const EngramMpiCalls& calls = load_mpi();
  int rank = 0, size = 0;
  if (const int code = calls.begin(&rank, &size); code != 0) {
    std::array<char, 512> message{};
    calls.error_text(code, message.data(), message.size());
    throw NotAvailable(text("ranks: MPI must begin, got: ", message.data()));
  }
  if (size != launched->size) {
    std::array<char, 256> library{};
    calls.library(library.data(), library.size());
    throw UsageError(
        text("ranks: MPI must see the ", launched->size, " processes that ", launched->launcher, " started, got ", size,
             "\n  this build's MPI is ", library.data(),
             ": start it by that one's mpirun, or by srun with --mpi=pmix (srun --mpi=list has the names)"));
  }
  return std::make_unique<MpiCommunicator>(calls, rank, size, limits);
}

namespace {

const bool registered_mpi = register_communicator([](double seconds) { return open_mpi({.seconds = seconds}); });

}  // namespace
}  // namespace engram::cpu
