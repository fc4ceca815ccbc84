#pragma once
/// Ctrl-C and `kill` end a run in an orderly way: the present step is finished, the run saved, the program left with
/// exit code 130.

#include "core/error.hpp"

namespace engram {

/// The user stopped the program and everything worth keeping is saved. Not a failure: `main` prints its message and
/// exits with 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// While it lives, SIGINT and SIGTERM only set a flag; a second one of the same kind ends the program at once. Not
/// more than one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool received() const;
};

}  // namespace engram
