/// The communicator over MPI, with an MPI that does what the test says: this process is rank 0 of 2, and what it sends
/// comes back as the other's.

#include "cpu/ranks/mpi_communicator.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "core/stopwatch.hpp"
#include "cpu/ranks/mpi_calls.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

struct EngramMpiMessages {
  int receives = 0;
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
  std::string said;      // the last words of the other; empty: none
  std::string told;      // what it was told
  std::string replaced;  // a text that begins with this comes back as...
  std::string instead;   // ... this, of the same length
  std::vector<int> lengths;
  std::deque<std::string> sent;
  bool ended = false;
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
  if (!fake().replaced.empty() && text.starts_with(fake().replaced)) text = fake().instead;
  fake().sent.push_back(text);
  return fake().code;
}
struct Room {
  void* bytes;
  int length;
};
std::deque<Room>& rooms() {
  static std::deque<Room> all;
  return all;
}
int fake_receive(EngramMpiMessages* messages, void* bytes, int length, int) {
  ++messages->receives;
  rooms().push_back({bytes, length});
  return 0;
}
int fake_test(EngramMpiMessages*, int* arrived) {
  *arrived = fake().silent ? 0 : 1;
  if (fake().silent) return 0;
  for (; !rooms().empty() && !fake().sent.empty(); rooms().pop_front(), fake().sent.pop_front())
    if (fake().copies) std::memcpy(rooms().front().bytes, fake().sent.front().data(), fake().sent.front().size());
  return 0;
}
int fake_hear(int* from, char* words, int, int* length) {
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
      .delete_messages = [](EngramMpiMessages*) {},
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
  explicit Two(const MpiLimits& limits = {.seconds = 0.05}) {
    fake() = {};
    rooms().clear();
    ranks = new MpiCommunicator(fake_calls(), 0, 2, limits);
    fake().lengths.clear();
  }
  ~Two() {
    static auto* const given_up = new std::vector<MpiCommunicator*>;
    if (fake().silent || fake().code != 0)
      given_up->push_back(ranks);
    else
      delete ranks;
  }
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

TEST_CASE("mpi: who waits for a rank that ends learns why", "[ranks]") {
  const Two two({.seconds = 30});
  fake().silent = true;
  fake().said = "the disk is full";
  CHECK(harness::message_of<RankError>([&] { two->any(true); }) == two->name(1) + ": the disk is full");
  // And comes to the same end.
  CHECK(two->all_end_with("the disk is full", 30));
  CHECK(fake().told == "the disk is full");
}

TEST_CASE("mpi: a neighbour that has gone is noticed before the deadline", "[ranks]") {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  Two two({.seconds = 30});
  // The same place, but for the number of the process, which is written as long as this one's.
  std::string own = OneRank().place(0), host = own.substr(0, own.find(','));
  const std::string number = std::to_string(::getpid()), other = std::to_string(gone);
  if (other.size() > number.size()) return;
  delete two.ranks;
  fake() = {};
  fake().replaced = host + "\n";
  // What is said of a place ends with the number.
  struct Spy {
    static int send(EngramMpiMessages* messages, const void* bytes, int length, int to) {
      std::string text(static_cast<const char*>(bytes), static_cast<std::size_t>(length));
      if (text.starts_with(fake().replaced))
        text.replace(text.size() - fake().instead.size(), fake().instead.size(), fake().instead);
      std::string kept = std::move(fake().replaced);
      fake().replaced.clear();
      const int code = fake_send(messages, text.data(), length, to);
      fake().replaced = std::move(kept);
      return code;
    }
  };
  fake().instead = std::string(number.size() - other.size(), '0') + other;
  static EngramMpiCalls calls;
  calls = fake_calls();
  calls.send = Spy::send;
  two.ranks = new MpiCommunicator(calls, 0, 2, {.seconds = 30});
  fake().silent = true;
  const Stopwatch watch;
  CHECK_THAT(harness::message_of<RankError>([&] { two->any(true); }),
             ContainsSubstring(", process " + other + "), which has gone without a word"));
  CHECK(watch.seconds() < 20);
}

TEST_CASE("mpi: ranks end together, or the first of them speaks", "[ranks]") {
  Two two;
  fake().said = "out of memory";
  CHECK(two->all_end_with("out of memory", 30));
  delete two.ranks;
  two.ranks = new MpiCommunicator(fake_calls(), 0, 2, {});
  fake().said = "another reason";
  CHECK_FALSE(two->all_end_with("out of memory", 30));
  delete two.ranks;
  two.ranks = new MpiCommunicator(fake_calls(), 0, 2, {});
  CHECK_FALSE(two->all_end_with("out of memory", 0.01));  // the other does not come
}

TEST_CASE("mpi: it ends with the ranks", "[ranks]") {
  { const Two two; }
  CHECK(fake().ended);
}

}  // namespace
}  // namespace engram::mpi_communicator_test
