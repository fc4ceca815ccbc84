/// Ranks with a card each, on a library and a runtime that are not NVIDIA's (fake_nccl.cpp, fake_cuda.cpp): which calls
/// are made, in which order with the streams, and what happens when a rank fails.

#include "cuda/card/nccl.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/stopwatch.hpp"
#include "cuda/card/captured_step.hpp"
#include "cuda/card/nccl_communicator.hpp"
#include "tests/card/stream_work.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::nccl_test {
namespace {

const card::Nccl& fake() {
  static const card::Nccl library(std::array<std::string, 1>{ENGRAM_FAKE_NCCL});
  return library;
}
/// A count that the fake keeps.
long count_of(const char* name) {
  void* const library = dlopen(ENGRAM_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
  const auto function = reinterpret_cast<long (*)()>(dlsym(library, name));
  const long count = function();
  dlclose(library);
  return count;
}

std::string thrown_by_loading(const std::string& file) {
  try {
    const card::Nccl library(std::array<std::string, 1>{file});
  } catch (const NotAvailable& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("nccl: a library that is missing, too old or another one is named") {
  CHECK_THAT(thrown_by_loading("libnone.so.2"),
             ContainsSubstring("ranks: device cuda must have NCCL, libnccl.so.2 was not found") &&
                 ContainsSubstring("libnone.so.2: cannot open") && ContainsSubstring("package libnccl2"));
  CHECK_THAT(thrown_by_loading("libm.so.6"),
             ContainsSubstring("libnccl.so.2 must have the function ncclGetVersion, which is missing"));
  setenv("FAKE_NCCL_VERSION", "21403", 1);
  CHECK_THAT(thrown_by_loading(ENGRAM_FAKE_NCCL),
             ContainsSubstring("ranks: NCCL must be version ") && ContainsSubstring("or newer, got 2.14.3"));
  unsetenv("FAKE_NCCL_VERSION");
  CHECK(thrown_by_loading(ENGRAM_FAKE_NCCL).empty());
}

/// A card of a rank: the stream of its steps, and the communicator.
struct RankCard {
  card::Stream stream;
  card::Waiting waiting;
  card::NcclCommunicator ranks;
  explicit RankCard(Communicator& host) : ranks(host, fake(), stream, waiting) {}

  void wait() { waiting.wait_for(stream); }
};

/// run_ranks() for ranks that all succeed: they end together, as processes do in MPI_Finalize. A slow one would take
/// one that has ended before it for one that failed.
void run_whole(int count, const std::function<void(Communicator&)>& body) {
  run_ranks(count, [&](Communicator& host) {
    body(host);
    host.any(true);
  });
}

/// What rank `from` sends to rank `to`: its length, and its bytes.
std::size_t length_of(int from, int to) { return static_cast<std::size_t>((from * 5 + to * 3) % 4) * 100; }
char byte_of(int from, int to, int round) { return static_cast<char>('a' + (from * 7 + to * 3 + round) % 26); }

std::vector<std::size_t> ends_of(const std::vector<std::size_t>& lengths) {
  std::vector<std::size_t> ends(lengths.size());
  std::partial_sum(lengths.begin(), lengths.end(), ends.begin());
  return ends;
}

/// Faults of exchanges on one rank: what is sent is written by the stream, and what arrives is read by it.
std::string exchange_rounds(Communicator& host, int rounds) {
  RankCard own(host);
  const int size = host.size(), rank = host.rank();
  std::vector<std::size_t> sends, receives;
  for (int q = 0; q < size; ++q) {
    sends.push_back(length_of(rank, q));
    receives.push_back(q == rank ? 0 : length_of(q, rank));
  }
  const std::vector<std::size_t> send_ends = ends_of(sends), receive_ends = ends_of(receives);
  std::string send(send_ends.back(), '?'), receive(receive_ends.back(), '?'), wrong;
  for (int round = 0; round < rounds; ++round) {
    hand_over(own.stream, [&, round] {
      std::string written;
      for (int q = 0; q < size; ++q) written += std::string(length_of(rank, q), byte_of(rank, q, round));
      std::memcpy(send.data(), written.data(), written.size());
    });
    const auto transfer = own.ranks.start_exchange(send.data(), send_ends, receive.data(), receive_ends);
    transfer->wait();
    hand_over(own.stream, [&, round] {
      std::string wanted;
      for (int q = 0; q < size; ++q)
        if (q != rank) wanted += std::string(length_of(q, rank), byte_of(q, rank, round));
      if (receive != wanted) wrong += text("round ", round, " ");
      receive.assign(receive.size(), '?');
    });
  }
  own.wait();
  return wrong;
}

TEST_CASE("nccl: an exchange has its place in the order of a step's stream, and the host waits for none") {
  for (const int size : {2, 3, 4}) {
    CAPTURE(size);
    const long before = count_of("fake_nccl_sends");
    std::vector<std::string> faults(static_cast<std::size_t>(size));
    run_whole(size,
              [&](Communicator& host) { faults[static_cast<std::size_t>(host.rank())] = exchange_rounds(host, 4); });
    CHECK(faults == std::vector<std::string>(static_cast<std::size_t>(size)));
    long sent = 0;  // parts of nothing, and a rank's own, are left out
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) sent += from != to && length_of(from, to) > 0 ? 4 : 0;
    CHECK(count_of("fake_nccl_sends") - before == sent);
    CHECK(count_of("fake_nccl_living") == 0);
  }
}

/// What ranks have when each wrote its part of a buffer and gathered the others'.
std::vector<std::string> gathered(const std::vector<std::size_t>& lengths) {
  const std::vector<std::size_t> ends = ends_of(lengths);
  std::vector<std::string> all(lengths.size(), std::string(ends.back(), '?'));
  run_whole(static_cast<int>(lengths.size()), [&](Communicator& host) {
    RankCard own(host);
    const auto rank = static_cast<std::size_t>(host.rank());
    std::string& mine = all[rank];
    hand_over(own.stream, [&] {
      for (std::size_t i = ends[rank] - lengths[rank]; i < ends[rank]; ++i) mine[i] = static_cast<char>('a' + rank);
    });
    const auto transfer = own.ranks.start_gather(mine.data(), ends);
    transfer->wait();
    own.wait();
    if (!transfer->advance()) throw Error("a transfer that was waited for must be complete");
  });
  return all;
}

TEST_CASE("nccl: parts are gathered, equal ones by one call") {
  const auto many = [](const std::vector<std::size_t>& lengths) {
    std::string text;
    for (std::size_t q = 0; q < lengths.size(); ++q) text += std::string(lengths[q], static_cast<char>('a' + q));
    return std::vector<std::string>(lengths.size(), text);
  };
  const long gathers = count_of("fake_nccl_gathers"), broadcasts = count_of("fake_nccl_broadcasts");
  CHECK(gathered({50, 50, 50}) == many({50, 50, 50}));
  CHECK(count_of("fake_nccl_gathers") == gathers + 3);
  CHECK(gathered({0, 0}) == many({0, 0}));
  CHECK(count_of("fake_nccl_broadcasts") == broadcasts);
  CHECK(gathered({40, 0, 7}) == many({40, 0, 7}));
  CHECK(count_of("fake_nccl_broadcasts") == broadcasts + 6);
  CHECK(count_of("fake_nccl_gathers") == gathers + 3);
}

TEST_CASE("nccl: a transfer goes on behind the host, which can ask for it") {
  run_whole(2, [](Communicator& host) {
    RankCard own(host);
    std::string buffer = host.leads() ? "a?" : "?b";
    const auto transfer = own.ranks.start_gather(buffer.data(), std::array<std::size_t, 2>{1, 2});
    const Stopwatch clock;
    while (!transfer->advance())
      if (clock.seconds() > 20) throw Error("a transfer must be complete at last");
    if (buffer != "ab") throw Error("a complete transfer must be here, got " + buffer);
  });
}

TEST_CASE("nccl: exchanges between the parts of a captured step are made anew in every replay") {
  std::vector<std::string> seen(2);
  run_whole(2, [&](Communicator& host) {
    RankCard own(host);
    const std::array<std::size_t, 2> ends{1, 2};
    const auto rank = static_cast<std::size_t>(host.rank());
    std::string buffer = "..", &read = seen[rank];
    std::unique_ptr<Transfer> transfer;
    char next = host.leads() ? 'a' : 'n';
    card::Capture capture(own.stream);
    hand_over(own.stream, [&] { buffer[rank] = next++; });
    capture.between([&] { transfer = own.ranks.start_gather(buffer.data(), ends); });
    capture.between([&] { transfer->wait(); });
    hand_over(own.stream, [&] { read += buffer; });
    const auto step = capture.finish();
    for (int replay = 0; replay < 4; ++replay) step->run();
    own.wait();
  });
  CHECK(seen == std::vector<std::string>(2, "anbocpdq"));
}

TEST_CASE("nccl: a call that is refused ends its group before all is aborted") {
  const long before = count_of("fake_nccl_aborts_in_groups");
  std::vector<std::string> messages(2);
  std::vector<long> open(2, -1);
  run_ranks(2, [&](Communicator& host) {
    const auto rank = static_cast<std::size_t>(host.rank());
    card::NcclComm comm(fake(), host);
    host.any(true);  // both have found each other
    std::string send = "abc", receive = "???";
    const std::array<std::size_t, 2> ends{1, 3}, equal{1, 2};
    for (const bool exchanges : {true, false}) {
      try {
        // Without a stream.
        if (exchanges)
          comm.exchange(send.data(), ends, receive.data(), ends, nullptr);
        else
          comm.gather(send.data(), equal, nullptr);
      } catch (const RankError& error) {
        messages[rank] += text(error.what(), "\n");
      }
    }
    open[rank] = count_of("fake_nccl_open_groups");
    host.any(true);
  });
  for (int rank = 0; rank < 2; ++rank)
    CHECK(messages[static_cast<std::size_t>(rank)] ==
          text("ranks: an exchange by NCCL must succeed on rank ", rank, " (thread ", rank,
               "), got: invalid usage: says the fake\nranks: NCCL must go on for a gathering, but was ended before\n"));
  CHECK(open == std::vector<long>{0, 0});
  CHECK(count_of("fake_nccl_aborts_in_groups") == before);
}

TEST_CASE("nccl: who gives up aborts what is on its way, so that its memory may go") {
  run_ranks(2, [](Communicator& host) {
    RankCard own(host);
    host.any(true);
    if (!host.leads()) return;
    std::string buffer = "a?";
    const auto transfer = own.ranks.start_gather(buffer.data(), std::array<std::size_t, 2>{1, 2});
    transfer->wait();
    CHECK(own.ranks.give_up());
    REQUIRE_THROWS_AS(own.ranks.start_gather(buffer.data(), std::array<std::size_t, 2>{1, 2}), RankError);
    wait_for(own.stream);  // which waits for nobody
  });
}

/// A host's communicator with a deadline.
class Impatient final : public Communicator {
 public:
  explicit Impatient(Communicator& ranks) : ranks_(&ranks) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string place(int rank) const override { return ranks_->place(rank); }
  std::unique_ptr<Transfer> start_exchange(const void*, PartEnds, void*, PartEnds) override { return nullptr; }
  std::unique_ptr<Transfer> start_gather(void*, PartEnds) override { return nullptr; }
  void gather_host(const void* own, std::size_t bytes, void* all) override { ranks_->gather_host(own, bytes, all); }
  void collect_host(void* all, PartEnds ends) override { ranks_->collect_host(all, ends); }
  bool all_end_with(std::string_view, double) override { return false; }
  [[noreturn]] void abort(int) override { throw Error("no test ends all ranks"); }
  void check_others() override { ranks_->check_others(); }
  double deadline() const override { return 0.2; }

 private:
  Communicator* ranks_;
};

/// What rank 0 is told when it waits for a gathering of one byte each, and rank 1 does what it is given.
std::string told(const std::function<void(RankCard&)>& other) {
  std::string message;
  const auto body = [&](Communicator& ranks) {
    Impatient host(ranks);
    RankCard own(host);
    ranks.any(true);  // both have come so far
    if (!ranks.leads()) {
      other(own);
      return;
    }
    std::string buffer = "a?";
    try {
      own.ranks.start_gather(buffer.data(), std::array<std::size_t, 2>{1, 2})->wait();
      own.wait();
    } catch (const RankError& error) {
      message = error.what();
    }
    wait_for(own.stream);  // which does not wait for the other rank any more
    if (message.find("must answer") != std::string::npos) ranks.any(true);
  };
  try {
    run_ranks(2, body);
  } catch (const RankError&) {  // the other one may be told as well
  } catch (const Error& error) {
    if (std::string(error.what()).find("on purpose") == std::string::npos) throw;
  }
  return message;
}

TEST_CASE("nccl: a rank that waits for one that has ended, fails or does not answer is told so") {
  CHECK_THAT(told([](RankCard&) { throw Error("on purpose"); }),
             ContainsSubstring("remote error") || ContainsSubstring("got one that has ended"));
  CHECK_THAT(told([](RankCard& own) { own.ranks.any(false); }),
             ContainsSubstring("rank 1 (thread 1) must answer within 0.2 s, got no answer on rank 0 (thread 0)"));
  CHECK_THAT(told([](RankCard& own) {
               std::string buffer = "?bb";
               own.ranks.start_gather(buffer.data(), std::array<std::size_t, 2>{1, 3})->wait();
               own.wait();
             }),
             ContainsSubstring("NCCL must succeed on rank 0 (thread 0), got: "));
}

}  // namespace
}  // namespace engram::harness::nccl_test
