#pragma once
/// What of its host a rank gets: cores and a card.

#include <string>
#include <string_view>
#include <vector>

#include "core/communicator.hpp"
#include "core/device.hpp"

namespace engram {

/// What a rank tells the others of where it runs.
struct RankPlace {
  std::string host;
  std::vector<int> cores;  ///< that it may use, by their numbers
};

struct RankShare {
  int local_rank = 0;   ///< among the ranks of its host
  int local_ranks = 1;  ///< of its host
  int hosts = 1;        ///< of all ranks
  int threads = 1;      ///< each core's time is shared equally by the ranks that may use it; at least 1
  int used_cores = 1;   ///< that the ranks of its host may use together
};

/// `places`: of all ranks, in their order.
RankShare share_of(const std::vector<RankPlace>& places, int rank);
/// Of this process. Collective.
RankShare share_of(Communicator& ranks);

/// Of the machine, whoever may use them.
int cores_of_host();

/// A sentence for the user: "4 ranks on 2 hosts, 8 threads each".
std::string share_text(const RankShare& share, int ranks, int threads, int cores_of_host);

/// What --threads is for a rank: `asked`, where it is not 0; 0 where OMP_NUM_THREADS says it or there is one rank; else
/// its share.
int threads_of_rank(const Communicator& ranks, const RankShare& share, int asked);

/// What --device names: "cuda" is the card of the rank's number on its host, "cuda:1" and all others what they are.
/// Throws UsageError as parse_device().
Device device_of_rank(std::string_view name, const RankShare& share);

}  // namespace engram
