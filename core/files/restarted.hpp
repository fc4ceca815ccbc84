#pragma once
/// Calls of the system that a signal may break off.

#include <cerrno>

namespace engram {

/// The result of `call`, a call of the system that returns -1 and sets errno when it fails. One that was broken off by
/// a signal (EINTR), which some file systems do even where signals restart calls, is made again. Not for close(): Linux
/// has given the descriptor back by then.
template <class Call>
auto restarted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

}  // namespace engram
