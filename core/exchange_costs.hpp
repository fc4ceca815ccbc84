#pragma once
/// What it costs to let other ranks know.

#include <cstdint>

namespace engram {

/// On one rank, since the beginning.
struct ExchangeCosts {
  std::int64_t bytes_sent = 0;
  double seconds = 0;         ///< in which something was on its way
  double seconds_waited = 0;  ///< of those, in which nothing else was done

  ExchangeCosts& operator+=(const ExchangeCosts& other) {
    bytes_sent += other.bytes_sent;
    seconds += other.seconds;
    seconds_waited += other.seconds_waited;
    return *this;
  }
};

}  // namespace engram
