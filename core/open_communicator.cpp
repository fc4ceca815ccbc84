#include "core/open_communicator.hpp"

#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/launcher.hpp"

namespace engram {
namespace {

// Filled before main by static initialisers, constant afterwards.
std::vector<CommunicatorFactory>& communicator_factories() {
  static std::vector<CommunicatorFactory> all;
  return all;
}

}  // namespace

bool register_communicator(CommunicatorFactory factory) {
  communicator_factories().push_back(factory);
  return true;
}

std::unique_ptr<Communicator> open_communicator(double seconds) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (!launched || launched->size == 1) return std::make_unique<OneRank>();
  for (const CommunicatorFactory factory : communicator_factories())
    if (std::unique_ptr<Communicator> ranks = factory(seconds)) return ranks;
  throw UsageError(text("ranks: ", launched->size, " processes were started by ", launched->launcher,
                        ", but this build has no MPI",
                        "\n  Debian: libopenmpi-dev, and build again; started alone, "
                        "engram is one process"));
}

}  // namespace engram
