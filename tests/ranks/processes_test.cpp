/// Ranks that are processes: every process of `mpirun -n N engram_tests_ranks "[mpi]"` runs these cases in the same
/// order. What they check must hold for every N.

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/communicator.hpp"
#include "cpu/ranks/mpi_library.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::processes_test {
namespace {

/// MPI begins and ends once in a process. Messages are short, so that parts are cut.
Communicator& ranks() {
  static const std::unique_ptr<Communicator> all = cpu::open_mpi({.seconds = 60, .message_bytes = 1000});
  if (!all) throw Error("these cases must be started by mpirun");
  return *all;
}

/// Byte i of what rank `from` has for rank `to` in the exchange of that number.
unsigned char byte_of(int from, int to, int number, std::size_t i) {
  return static_cast<unsigned char>(31 * static_cast<std::size_t>(from) + 7 * static_cast<std::size_t>(to) +
                                    13 * static_cast<std::size_t>(number) + i + i / 251);
}

/// How long that is: of all kinds, and none.
std::size_t length_of(int from, int to, int number) {
  const std::size_t lengths[] = {0, 1, 999, 1000, 1001, 5000, 100000};
  return lengths[static_cast<std::size_t>(from + 3 * to + 5 * number) % std::size(lengths)];
}

struct Exchange {
  explicit Exchange(int given) : number(given) {
    const int own = ranks().rank();
    for (int q = 0; q < ranks().size(); ++q) {
      for (std::size_t i = 0; i < length_of(own, q, number); ++i) send.push_back(byte_of(own, q, number, i));
      send_ends.push_back(send.size());
      receive_ends.push_back((q == 0 ? 0 : receive_ends.back()) + (q == own ? 0 : length_of(q, own, number)));
    }
    receive.resize(receive_ends.back());
    transfer = ranks().start_exchange(send.data(), send_ends, receive.data(), receive_ends);
  }
  /// How many bytes are not those of their senders.
  std::size_t wrong() {
    transfer->wait();
    std::size_t at = 0, count = 0;
    for (int q = 0; q < ranks().size(); ++q)
      for (std::size_t i = 0; q != ranks().rank() && i < length_of(q, ranks().rank(), number); ++i)
        count += receive[at++] != byte_of(q, ranks().rank(), number, i) ? 1 : 0;
    return count + (at - receive.size());
  }

  int number;
  std::vector<unsigned char> send, receive;
  std::vector<std::size_t> send_ends, receive_ends;
  std::unique_ptr<Transfer> transfer;
};

TEST_CASE("processes: an exchange brings every part to its rank", "[mpi]") {
  for (int number = 0; number < 7; ++number) CHECK(Exchange(number).wrong() == 0);
}

TEST_CASE("processes: several exchanges are on their way at a time", "[mpi]") {
  std::vector<std::unique_ptr<Exchange>> all;
  for (int number = 0; number < 5; ++number) {
    all.push_back(std::make_unique<Exchange>(number));
    all.front()->transfer->advance();
  }
  // Numbers of the host may be gathered meanwhile.
  CHECK(ranks().any(ranks().rank() == ranks().size() - 1));
  for (auto exchange = all.rbegin(); exchange != all.rend(); ++exchange) CHECK((*exchange)->wrong() == 0);
}

TEST_CASE("processes: a transfer that is asked often enough completes", "[mpi]") {
  Exchange exchange(3);
  while (!exchange.transfer->advance()) {
  }
  CHECK(exchange.wrong() == 0);
}

TEST_CASE("processes: a gathering fills in the others' parts", "[mpi]") {
  std::vector<std::size_t> ends;
  for (int q = 0; q < ranks().size(); ++q) ends.push_back((q == 0 ? 0 : ends.back()) + length_of(q, 0, 1));
  const auto filled = [&](bool all) {
    std::vector<unsigned char> bytes(ends.back(), 0xee);
    for (int q = 0; q < ranks().size(); ++q)
      for (std::size_t i = 0; i < length_of(q, 0, 1); ++i)
        if (all || q == ranks().rank())
          bytes[ends[static_cast<std::size_t>(q)] - length_of(q, 0, 1) + i] = byte_of(q, 0, 1, i);
    return bytes;
  };
  std::vector<unsigned char> bytes = filled(false);
  ranks().start_gather(bytes.data(), ends)->wait();
  CHECK(bytes == filled(true));
}

TEST_CASE("processes: rank 0 collects parts of the host", "[mpi]") {
  std::vector<std::size_t> ends;
  for (int q = 0; q < ranks().size(); ++q) ends.push_back((q == 0 ? 0 : ends.back()) + length_of(q, 0, 2));
  std::string all(ends.back(), '.'), expected;
  for (int q = 0; q < ranks().size(); ++q) {
    const std::size_t begin = q == 0 ? 0 : ends[static_cast<std::size_t>(q) - 1];
    const std::string part(ends[static_cast<std::size_t>(q)] - begin, static_cast<char>('a' + q));
    expected += part;
    if (q == ranks().rank()) all.replace(begin, part.size(), part);
  }
  ranks().collect_host(all.data(), ends);
  if (ranks().leads()) CHECK(all == expected);
}

TEST_CASE("processes: numbers and texts of the host", "[mpi]") {
  const double own = 0.5 + ranks().rank();
  std::vector<double> all(static_cast<std::size_t>(ranks().size()));
  ranks().gather_host(&own, sizeof(own), all.data());
  for (std::size_t q = 0; q < all.size(); ++q) CHECK(all[q] == 0.5 + static_cast<double>(q));
  const std::vector<std::string> texts =
      ranks().gather_texts(std::string(static_cast<std::size_t>(ranks().rank()), 'x'));
  for (std::size_t q = 0; q < texts.size(); ++q) CHECK(texts[q] == std::string(q, 'x'));
  CHECK_FALSE(ranks().any(false));
}

TEST_CASE("processes: all learn who differs", "[mpi]") {
  const int last = ranks().size() - 1;
  const std::string message =
      harness::message_of<UsageError>([&] { ranks().require_same("the seed", ranks().rank() == last ? "2" : "1"); });
  if (last == 0)
    CHECK(message.empty());
  else
    CHECK(message == "ranks: the seed must be the same everywhere, got 1 on " + ranks().name(0) + " and 2 on " +
                         ranks().name(last));
  ranks().require_same("the seed", "1");
}

TEST_CASE("processes: all throw what one did", "[mpi]") {
  const int last = ranks().size() - 1;
  const auto work = [&] {
    if (ranks().rank() == last) throw FileError("the disk is full");
  };
  const std::string message = harness::message_of<Error>([&] { together(ranks(), work); });
  CHECK(message == (last == 0 ? "" : ranks().name(last) + ": ") + "the disk is full");
}

TEST_CASE("processes: thousands of small meetings in random order of arrival", "[mpi]") {
  reference::RandomArrays random(static_cast<std::uint64_t>(ranks().rank()) + 1);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    volatile double work = 1;
    for (std::int64_t j = random.below(2000); j > 0; --j) work = work * 1.0000001;
    std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks().size()));
    const std::uint64_t own = i * 100 + static_cast<std::uint64_t>(ranks().rank());
    ranks().gather_host(&own, sizeof(own), all.data());
    for (std::size_t q = 0; q < all.size(); ++q) wrong += all[q] != i * 100 + q ? 1 : 0;
  }
  CHECK(wrong == 0);
}

// The last one: nothing is said after it.
TEST_CASE("processes: they end with one reason", "[mpi]") { CHECK(ranks().all_end_with("all is said", 30)); }

}  // namespace
}  // namespace engram::processes_test
