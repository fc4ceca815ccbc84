#include "apps/run/model/rank_share.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "core/error.hpp"

namespace engram {
namespace {

std::vector<int> own_cores() {
  std::vector<int> cores;
#if defined(__linux__)
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &mask)) cores.push_back(core);
#endif
  if (cores.empty())
    for (int core = 0; core < cores_of_host(); ++core) cores.push_back(core);
  return cores;
}

/// "host 0 1 2", and back.
std::string text_of_place() {
  std::string told = host_name();
  for (const int core : own_cores()) told += text(" ", core);
  return told;
}
RankPlace place_of_text(const std::string& told) {
  RankPlace place;
  std::size_t end = told.find(' ');
  place.host = told.substr(0, end);
  while (end != std::string::npos) {
    const std::size_t begin = end + 1;
    end = told.find(' ', begin);
    int core = 0;
    std::from_chars(told.data() + begin, told.data() + std::min(end, told.size()), core);
    place.cores.push_back(core);
  }
  return place;
}

}  // namespace

RankShare share_of(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& own = places[static_cast<std::size_t>(rank)];
  std::set<std::string> hosts;
  std::set<int> used;
  RankShare share;
  double cores = 0;
  share.local_ranks = 0;
  for (const RankPlace& place : places) hosts.insert(place.host);
  for (int q = 0; q < static_cast<int>(places.size()); ++q) {
    const RankPlace& place = places[static_cast<std::size_t>(q)];
    if (place.host != own.host) continue;
    if (q < rank) ++share.local_rank;
    ++share.local_ranks;
    used.insert(place.cores.begin(), place.cores.end());
  }
  for (const int core : own.cores) {
    const auto shares = std::ranges::count_if(places, [&](const RankPlace& place) {
      return place.host == own.host && std::ranges::find(place.cores, core) != place.cores.end();
    });
    cores += 1.0 / static_cast<double>(shares);
  }
  share.hosts = static_cast<int>(hosts.size());
  share.threads = std::max(1, static_cast<int>(cores + 1e-9));
  share.used_cores = static_cast<int>(used.size());
  return share;
}

RankShare share_of(Communicator& ranks) {
  std::vector<RankPlace> places;
  for (const std::string& told : ranks.gather_texts(text_of_place())) places.push_back(place_of_text(told));
  return share_of(places, ranks.rank());
}

int cores_of_host() { return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))); }

std::string share_text(const RankShare& share, int ranks, int threads, int cores_of_host) {
  std::string line = text(ranks, " ranks on ", share.hosts, share.hosts == 1 ? " host" : " hosts");
  if (threads > 0) line += text(", ", threads, threads == 1 ? " thread each" : " threads each");
  if (share.used_cores < cores_of_host)
    line += text("; the launcher lets them use ", share.used_cores, " of ", cores_of_host,
                 " cores here (mpirun --bind-to none: all)");
  return line;
}

int threads_of_rank(const Communicator& ranks, const RankShare& share, int asked) {
  if (asked > 0 || ranks.alone() || std::getenv("OMP_NUM_THREADS") != nullptr) return asked;
  return share.threads;
}

Device device_of_rank(std::string_view name, const RankShare& share) {
  Device device = parse_device(name);
  if (name == name_of(DeviceKind::cuda)) device.index = share.local_rank;
  return device;
}

}  // namespace engram
