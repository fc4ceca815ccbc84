#pragma once
/// Ranks that train one model must have begun alike.

#include <string>

#include "core/backend.hpp"
#include "core/communicator.hpp"

namespace engram {

/// What must be the same on all ranks.
struct StartFacts {
  std::string program;  ///< what it was built from and how
  std::string config;   ///< as resolved, in TOML
  std::string data;     ///< the hash of the data folder
  std::string device;   ///< its kind
  std::string dtype;
  std::string checkpoint;  ///< which step the run goes on from, and with what
};

/// Collective. Throws UsageError, the same on all ranks, that names the first rank that differs from rank 0 and what
/// differs; of configurations every key with both values.
void require_same_start(Communicator& ranks, const StartFacts& own);

/// The same of the instructions that the processors compute by (Backend::instructions).
void require_same_instructions(Communicator& ranks, const Backend& backend);

}  // namespace engram
