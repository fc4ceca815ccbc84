#include "apps/run/model/rank_share.hpp"

#include <numeric>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::rank_share_test {
namespace {

std::vector<int> cores(int begin, int end) {
  std::vector<int> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

TEST_CASE("rank share: ranks that may use the same cores share them", "[ranks]") {
  const std::vector<RankPlace> places{
      {"a", cores(0, 16)}, {"a", cores(0, 16)}, {"a", cores(0, 16)}, {"b", cores(0, 8)}};
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(share_of(places, rank).threads == 5);
    CHECK(share_of(places, rank).local_rank == rank);
    CHECK(share_of(places, rank).local_ranks == 3);
    CHECK(share_of(places, rank).hosts == 2);
  }
  CHECK(share_of(places, 3).threads == 8);
  CHECK(share_of(places, 3).local_rank == 0);
}

TEST_CASE("rank share: cores that the launcher gave to each are its own", "[ranks]") {
  const std::vector<RankPlace> places{{"a", cores(0, 4)}, {"a", cores(4, 8)}, {"a", cores(8, 16)}, {"a", cores(8, 16)}};
  CHECK(share_of(places, 0).threads == 4);
  CHECK(share_of(places, 2).threads == 4);
  CHECK(share_of(places, 0).used_cores == 16);
}

TEST_CASE("rank share: more ranks than cores have a thread each", "[ranks]") {
  const std::vector<RankPlace> places(4, RankPlace{"a", cores(0, 2)});
  CHECK(share_of(places, 3).threads == 1);
}

TEST_CASE("rank share: it is said", "[ranks]") {
  CHECK(share_text({.hosts = 1, .threads = 2, .used_cores = 8}, 4, 2, 8) == "4 ranks on 1 host, 2 threads each");
  CHECK(
      share_text({.hosts = 2, .threads = 1, .used_cores = 2}, 4, 1, 16) ==
      "4 ranks on 2 hosts, 1 thread each; the launcher lets them use 2 of 16 cores here (mpirun --bind-to none: all)");
}

TEST_CASE("rank share: a card without a number is that of the rank on its host", "[ranks]") {
  const RankShare third{.local_rank = 2};
  CHECK(device_of_rank("cuda", third) == Device{DeviceKind::cuda, 2});
  CHECK(device_of_rank("cuda:0", third) == Device{DeviceKind::cuda, 0});
  CHECK(device_of_rank("cpu", third) == Device{DeviceKind::cpu, 0});
  CHECK_THROWS_AS(device_of_rank("card", third), UsageError);
}

TEST_CASE("rank share: ranks tell each other where they run", "[ranks]") {
  run_ranks(3, [](Communicator& ranks) {
    const RankShare share = share_of(ranks);
    if (share.local_rank != ranks.rank() || share.hosts != 1 || share.threads < 1)
      throw Error("three threads of one process must be on one host");
  });
}

}  // namespace
}  // namespace engram::rank_share_test
