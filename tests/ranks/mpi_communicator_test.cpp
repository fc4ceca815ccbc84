/// The communicator over MPI, with an MPI that does what the test says: this process is rank 0 of 2, and what it sends
/// comes back as the other's.

#include "cpu/ranks/mpi_communicator.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/stopwatch.hpp"
#include "cpu/ranks/mpi_calls.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

struct EngramMpiMessages {
  int receives = 0;  // that have not arrived
  bool too_short = false;
};

namespace engram::mpi_communicator_test {
namespace {

using cpu::MpiCommunicator;
using cpu::MpiLimits;

/// What the MPI of a test does and has seen. The table of its functions has no room for it.
struct Fake {
  bool silent = false;   // nothing arrives any more
  bool copies = true;    // false: the memory is not looked at
  int code = 0;          // of every send
  std::size_t lost = 0;  // bytes at the end of every message
  std::string said;      // the last words of the other, as they travel; empty: none
  std::string told;      // what it was told
  std::vector<int> lengths;
  std::deque<std::string> sent;
  int deleted = 0, deleted_early = 0;
  bool ended = false;
  std::function<void(std::string&)> change;  // what is sent; empty: nothing is changed
};
Fake& fake() {
  static Fake one;
  return one;
}

/// Of the whole process: those that do not arrive are nobody's.
std::deque<EngramMpiMessages>& fake_messages() {
  static std::deque<EngramMpiMessages> all;
  return all;
}

int fake_send(EngramMpiMessages*, const void* bytes, int length, int) {
  fake().lengths.push_back(length);
  std::string text;
  if (fake().copies) text.assign(static_cast<const char*>(bytes), static_cast<std::size_t>(length));
  if (fake().change) fake().change(text);
  if (fake().lost > 0) text.resize(text.size() - std::min(text.size(), fake().lost));
  fake().sent.push_back(text);
  return fake().code;
}
struct Room {
  EngramMpiMessages* messages;
  void* bytes;
  int length;
};
std::deque<Room>& rooms() {
  static std::deque<Room> all;
  return all;
}
int fake_receive(EngramMpiMessages* messages, void* bytes, int length, int) {
  ++messages->receives;
  rooms().push_back({messages, bytes, length});
  return 0;
}
/// As MPI does, whatever it is called for: writes what has come into the memory that waits for it.
void make_progress() {
  if (fake().silent) return;
  for (; !rooms().empty() && !fake().sent.empty(); rooms().pop_front(), fake().sent.pop_front()) {
    const Room& room = rooms().front();
    const std::string& bytes = fake().sent.front();
    if (fake().copies) {
      std::memcpy(room.bytes, bytes.data(), bytes.size());
      room.messages->too_short |= bytes.size() < static_cast<std::size_t>(room.length);
    }
    --room.messages->receives;
  }
}
int fake_test(EngramMpiMessages* messages, int* arrived) {
  make_progress();
  *arrived = messages->receives == 0 ? 1 : 0;
  return *arrived != 0 && messages->too_short ? cpu::kMpiTooShort : 0;
}
void fake_delete(EngramMpiMessages* messages) {
  ++fake().deleted;
  if (messages->receives > 0) ++fake().deleted_early;
}
int fake_hear(int* from, char* words, int, int* length) {
  make_progress();
  *from = -1;
  *length = static_cast<int>(fake().said.size());
  if (fake().said.empty()) return 0;
  *from = 1;
  std::memcpy(words, fake().said.data(), fake().said.size());
  fake().said.clear();
  return 0;
}

const EngramMpiCalls& fake_calls() {
  static const EngramMpiCalls calls{
      .version = cpu::kMpiCallsVersion,
      .begin = nullptr,
      .end = [] { return fake().ended = true, 0; },
      .abort = [](int) {},
      .library = nullptr,
      .error_text = [](int code, char* message, std::size_t room) { text("code ", code).copy(message, room); },
      .new_messages = [] { return &fake_messages().emplace_back(); },
      .delete_messages = fake_delete,
      .send = fake_send,
      .receive = fake_receive,
      .test = fake_test,
      .waits_for = [](EngramMpiMessages*) { return 1; },
      .tell = [](const char* words, int length,
                 int) { return fake().told.assign(words, static_cast<std::size_t>(length)), 0; },
      .hear = fake_hear};
  return calls;
}

/// Rank 0 of 2. It is never destroyed with messages on their way, which would end the process: a failure's is given up.
struct Two {
  explicit Two(const MpiLimits& limits = {.seconds = 0.05}, std::function<void(std::string&)> change = {}) {
    fake() = {};
    fake().change = std::move(change);
    rooms().clear();
    ranks = new MpiCommunicator(fake_calls(), 0, 2, limits);
    fake().lengths.clear();
    fake().deleted = 0;
  }
  ~Two() {
    static auto* const given_up = new std::vector<MpiCommunicator*>;
    CHECK(fake().deleted_early == 0);
    if (!ranks->give_up() || !ranks->can_end())
      given_up->push_back(ranks);
    else
      delete ranks;
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;
  MpiCommunicator& operator*() const { return *ranks; }
  MpiCommunicator* operator->() const { return ranks; }

  MpiCommunicator* ranks;
};

TEST_CASE("mpi: ranks know their places", "[ranks]") {
  const Two two;
  CHECK(two->rank() == 0);
  CHECK(two->size() == 2);
  CHECK(two->place(1) == OneRank().place(0));
  CHECK(two->name(1) == "rank 1 (" + OneRank().place(0) + ")");
}

TEST_CASE("mpi: long parts are cut, empty ones are not sent", "[ranks]") {
  const Two two({.seconds = 1, .message_bytes = 10});
  std::string send(25, 'a'), receive(25, ' ');
  std::iota(send.begin(), send.end(), 'a');
  const std::size_t send_ends[] = {0, 25}, receive_ends[] = {0, 25};
  two->start_exchange(send.data(), send_ends, receive.data(), receive_ends)->wait();
  CHECK(receive == send);
  CHECK(fake().lengths == std::vector{10, 10, 5});
  fake().lengths.clear();
  const std::size_t nothing[] = {25, 25};
  two->start_exchange(send.data(), nothing, receive.data(), nothing)->wait();
  CHECK(fake().lengths.empty());
}

TEST_CASE("mpi: no message is longer than MPI can count", "[ranks]") {
  const Two two({.seconds = 1});
  fake().copies = false;
  const std::size_t gib = std::size_t{1} << 30, ends[] = {0, 5 * gib + 7};
  std::byte* const nowhere = nullptr;
  two->start_exchange(nowhere, ends, nowhere, ends)->wait();
  const int most = 1 << 30;
  CHECK(fake().lengths == std::vector{most, most, most, most, most, 7});
}

TEST_CASE("mpi: a rank that does not answer is named", "[ranks]") {
  const Two two({.seconds = 0.02});
  fake().silent = true;
  const std::string message = harness::message_of<RankError>([&] { two->any(true); });
  CHECK_THAT(message, ContainsSubstring(two->name(1) + " must answer within 0.02 s"));
}

TEST_CASE("mpi: what MPI refuses is an error with its words", "[ranks]") {
  const Two two;
  fake().code = 17;
  CHECK(harness::message_of<RankError>([&] { two->any(true); }) ==
        "ranks: sending must succeed, got from MPI: code 17");
}

TEST_CASE("mpi: a transfer is complete when its bytes have come, not before", "[ranks]") {
  const Two two({.seconds = 1});
  fake().silent = true;
  const std::string send = "..ab";
  std::string receive = "??";
  const std::size_t send_ends[] = {2, 4}, receive_ends[] = {0, 2};
  {
    const auto transfer = two->start_exchange(send.data(), send_ends, receive.data(), receive_ends);
    CHECK_FALSE(transfer->advance());
    CHECK_FALSE(two->give_up());
    CHECK(receive == "??");
    fake().silent = false;
    CHECK(transfer->advance());
    CHECK(receive == "ab");
    CHECK(fake().deleted == 0);
  }
  CHECK(fake().deleted == 1);
  CHECK(two->give_up());
}

TEST_CASE("mpi: a message that is shorter than was waited for is an error", "[ranks]") {
  const Two two({.seconds = 1});
  fake().lost = 1;
  CHECK(harness::message_of<RankError>([&] { two->any(true); }) ==
        text("ranks: transferring must succeed, got from MPI: code ", cpu::kMpiTooShort));
  CHECK_FALSE(two->give_up());
}

TEST_CASE("mpi: who waits for a rank that ends learns why", "[ranks]") {
  const Two two({.seconds = 30});
  fake().silent = true;
  fake().said = "+the disk is full";
  CHECK(harness::message_of<RankError>([&] { two->any(true); }) == two->name(1) + ": the disk is full");
  // And comes to the same end, with something on its way.
  CHECK(two->all_end_with("the disk is full", 30));
  CHECK(fake().told == "!the disk is full");
  CHECK_FALSE(two->can_end());
}

TEST_CASE("mpi: memory of the host is no longer written to when the call that it was given to has failed", "[ranks]") {
  const Two two({.seconds = 0.01});
  fake().silent = true;
  std::string gathered = "????", collected = "..??";
  const std::size_t ends[] = {2, 4};
  CHECK_THROWS_AS(two->gather_host("ab", 2, gathered.data()), RankError);
  CHECK_THROWS_AS(two->collect_host(collected.data(), ends), RankError);
  REQUIRE(rooms().size() == 2);
  fake().sent.emplace_back("cd");
  fake().silent = false;
  CHECK_FALSE(two->all_end_with("no answer", 0.01));
  CHECK(rooms().empty());  // it has all come
  CHECK(gathered == "????");
  CHECK(collected == "..??");
}

TEST_CASE("mpi: a neighbour that has gone is noticed before the deadline", "[ranks]") {
  // A process that is not there, with a number as long as this one's: what is said of a place ends with it.
  const std::string number = std::to_string(::getpid());
  std::string other;
  for (pid_t candidate = ::getpid() - 1; candidate > 1 && other.empty(); --candidate) {
    if (std::to_string(candidate).size() < number.size()) break;
    if (::kill(candidate, 0) != 0 && errno == ESRCH) other = std::to_string(candidate);
  }
  for (pid_t candidate = ::getpid() + 1; other.empty(); ++candidate) {
    REQUIRE(std::to_string(candidate).size() == number.size());
    if (::kill(candidate, 0) != 0 && errno == ESRCH) other = std::to_string(candidate);
  }
  const std::string host = host_name() + "\n";
  const Two two({.seconds = 30}, [&](std::string& text) {
    if (text.starts_with(host)) text.replace(text.size() - other.size(), other.size(), other);
  });
  fake().silent = true;
  const Stopwatch watch;
  CHECK_THAT(harness::message_of<RankError>([&] { two->any(true); }),
             ContainsSubstring(", process " + other + "), which has gone without a word"));
  CHECK(watch.seconds() < 20);
}

TEST_CASE("mpi: ranks end together, or the first of them speaks", "[ranks]") {
  const auto ends = [](const char* said, double seconds) {
    const Two two;
    fake().said = said;
    const bool together = two->all_end_with("out of memory", seconds);
    CHECK(fake().told == "+out of memory");
    return text(together ? "all" : "alone", two->can_end() ? "" : ", with messages on their way");
  };
  CHECK(ends("+out of memory", 30) == "all");
  CHECK(ends("!out of memory", 30) == "all, with messages on their way");
  CHECK(ends("+another reason", 30) == "alone");
  CHECK(ends("", 0.01) == "alone");  // the other does not come
}

TEST_CASE("mpi: it ends with the ranks", "[ranks]") {
  { const Two two; }
  CHECK(fake().ended);
}

}  // namespace
}  // namespace engram::mpi_communicator_test
