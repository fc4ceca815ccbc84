#pragma once
/// Of several ranks rank 0 speaks, and what all end with is said once.

#include <string>

#include "core/communicator.hpp"

namespace engram {

/// How the program ends.
struct Ending {
  int code = 0;         ///< of the process
  std::string kind;     ///< what the message begins with: "error: ", or nothing
  std::string message;  ///< empty: there is nothing to say
};

/// On all ranks but rank 0: nothing of the log is shown any more, and what is printed to stdout goes nowhere. For main,
/// while the process has one thread that writes.
void leave_speaking_to_rank_0(const Communicator& ranks);

/// Says on stderr what the program ends with, and returns its exit code. Where all ranks come here within so many
/// seconds with the same to say, rank 0 says it, as a single process would. Otherwise this rank says it, with its name,
/// and ends all ranks. A message that was another rank's, and begins with that one's name, is the same as that one's.
int end_with_one_voice(Communicator& ranks, const Ending& ending, double seconds);

}  // namespace engram
