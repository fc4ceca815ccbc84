#include "cpu/ranks/mpi_communicator.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace engram::cpu {
namespace {

using std::chrono::duration;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Longer ones are cut: short messages leave without waiting for a receiver.
constexpr std::size_t kMostWords = 2000;
/// What last words begin with.
constexpr char kNothingLeft = '+', kUnfinished = '!';

/// How long a launcher may take to end the others of a rank that has gone, and say so itself.
constexpr std::chrono::seconds kLauncherTime{4};

/// How long messages may take that were sent before a rank's last words.
constexpr std::chrono::seconds kGrace{1};

/// Equal for processes that can ask the system for each other by their numbers; empty: it is not known.
std::string process_space() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::error_code error;
  const std::filesystem::path space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return std::getline(file, boot) && !error ? boot + space.string() : "";
}

/// Whether a process has ended, and its parent, a launcher that is busy, has not taken note.
bool is_dead(pid_t process) {
  std::ifstream file(text("/proc/", static_cast<std::int64_t>(process), "/stat"));
  std::string line;
  if (!std::getline(file, line)) return false;
  // "4711 (engram) Z ...": the name may have any characters.
  const std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X');
}

/// How long to sleep before looking again, after waiting for so long: not at all at first, and in the end so that
/// waiting costs the ranks beside it nothing.
microseconds pause_after(std::chrono::steady_clock::duration waited) {
  if (waited < microseconds(500)) return microseconds(0);
  if (waited < milliseconds(20)) return microseconds(20);
  if (waited < milliseconds(500)) return microseconds(200);
  return waited < std::chrono::seconds(5) ? milliseconds(1) : milliseconds(5);
}

}  // namespace

class MpiCommunicator::Messages final : public Transfer {
 public:
  explicit Messages(MpiCommunicator& ranks) : ranks_(&ranks), all_(ranks.calls_.new_messages()) {
    ++ranks_->on_their_way_;
  }
  /// One that has not arrived stays in MPI's hands, which may still write into its memory: that lives as long as ranks
  /// do.
  ~Messages() override {
    if (arrived_)
      ranks_->calls_.delete_messages(all_);
    else if (memory_)
      ranks_->in_mpis_hands_.push_back(std::move(memory_));
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// Memory of the host for its bytes, which lives as long as MPI may need it, not only as long as the call.
  std::byte* take_memory(std::size_t bytes) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return memory_.get();
  }
  void send(const std::byte* bytes, std::size_t length, int to) {
    for_pieces(length, [&](std::size_t begin, int piece) {
      ranks_->check(ranks_->calls_.send(all_, bytes + begin, piece, to), "sending");
    });
  }
  void receive(std::byte* bytes, std::size_t length, int from) {
    for_pieces(length, [&](std::size_t begin, int piece) {
      ranks_->check(ranks_->calls_.receive(all_, bytes + begin, piece, from), "receiving");
    });
  }

  bool advance() override {
    if (arrived_) return true;
    int arrived = 0;
    if (const int code = ranks_->calls_.test(all_, &arrived); code != 0) ranks_->check(code, "transferring");
    if (arrived == 0) return false;
    arrived_ = true;
    --ranks_->on_their_way_;
    return true;
  }
  /// Every rank's part of `all` goes to all others.
  void gather(std::byte* all, PartEnds ends) {
    const int rank = ranks_->rank_, size = ranks_->size_;
    for (int distance = 1; distance < size; ++distance) {
      const int from = (rank + size - distance) % size;
      receive(all + part_begin(ends, from), part_length(ends, from), from);
    }
    for (int distance = 1; distance < size; ++distance)
      send(all + part_begin(ends, rank), part_length(ends, rank), (rank + distance) % size);
  }

  void wait() override {
    ranks_->wait([this] { return advance(); }, [this] { return ranks_->calls_.waits_for(all_); });
  }

 private:
  template <class F>
  void for_pieces(std::size_t length, F&& use) {
    const std::size_t most = ranks_->limits_.message_bytes;
    for (std::size_t begin = 0; begin < length; begin += most)
      use(begin, static_cast<int>(std::min(most, length - begin)));
  }

  MpiCommunicator* ranks_;
  EngramMpiMessages* all_;
  std::unique_ptr<std::byte[]> memory_;
  bool arrived_ = false;
};

MpiCommunicator::MpiCommunicator(const EngramMpiCalls& calls, int rank, int size, const MpiLimits& limits)
    : calls_(calls),
      rank_(rank),
      size_(size),
      limits_(limits),
      places_(static_cast<std::size_t>(size)),
      words_(static_cast<std::size_t>(size)) {
  learn_places();
}

MpiCommunicator::~MpiCommunicator() {
  if (can_end()) {
    calls_.end();
    return;
  }
  if (rank_ == 0) abort(1);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  std::_Exit(1);
}

void MpiCommunicator::learn_places() {
  const std::string own = text(host_name(), "\n", process_space(), "\n", static_cast<std::int64_t>(::getpid()));
  const std::vector<std::string> all = gather_texts(own);
  for (int q = 0; q < size_; ++q) {
    const std::string& told = all[static_cast<std::size_t>(q)];
    const std::size_t first = told.find('\n'), last = told.rfind('\n');
    places_[static_cast<std::size_t>(q)] = {
        .host = told.substr(0, first),
        .processes = told.substr(first + 1, last - first - 1),
        .process = static_cast<pid_t>(std::strtol(told.c_str() + last + 1, nullptr, 10))};
  }
}

std::string MpiCommunicator::place(int rank) const {
  const Place& there = places_[static_cast<std::size_t>(rank)];
  return text(there.host, ", process ", static_cast<std::int64_t>(there.process));
}

/// Its place is not known before all have told theirs.
std::string MpiCommunicator::described(int rank) const {
  return places_[static_cast<std::size_t>(rank)].host.empty() ? text("rank ", rank) : name(rank);
}

void MpiCommunicator::check(int code, const char* what) const {
  if (code == 0) return;
  std::array<char, 512> message{};
  calls_.error_text(code, message.data(), message.size());
  throw RankError(text("ranks: ", what, " must succeed, got from MPI: ", message.data()));
}

std::unique_ptr<Transfer> MpiCommunicator::start_exchange(const void* send, PartEnds send_ends, void* receive,
                                                          PartEnds receive_ends) {
  const auto* const from = static_cast<const std::byte*>(send);
  auto* const to = static_cast<std::byte*>(receive);
  auto messages = std::make_unique<Messages>(*this);
  // Each begins with its neighbour, so that not all talk to rank 0 at once.
  for (int distance = 1; distance < size_; ++distance) {
    const int q = (rank_ + size_ - distance) % size_;
    messages->receive(to + part_begin(receive_ends, q), part_length(receive_ends, q), q);
  }
  for (int distance = 1; distance < size_; ++distance) {
    const int q = (rank_ + distance) % size_;
    messages->send(from + part_begin(send_ends, q), part_length(send_ends, q), q);
  }
  return messages;
}

std::unique_ptr<Transfer> MpiCommunicator::start_gather(void* all, PartEnds ends) {
  auto messages = std::make_unique<Messages>(*this);
  messages->gather(static_cast<std::byte*>(all), ends);
  return messages;
}

void MpiCommunicator::gather_host(const void* own, std::size_t bytes, void* all) {
  if (bytes == 0) return;
  std::vector<std::size_t> ends;
  for (int q = 1; q <= size_; ++q) ends.push_back(static_cast<std::size_t>(q) * bytes);
  Messages messages(*this);
  std::byte* const gathered = messages.take_memory(ends.back());
  std::memcpy(gathered + part_begin(ends, rank_), own, bytes);
  messages.gather(gathered, ends);
  messages.wait();
  std::memcpy(all, gathered, ends.back());
}

void MpiCommunicator::collect_host(void* all, PartEnds ends) {
  auto* const bytes = static_cast<std::byte*>(all);
  const std::size_t begin = part_begin(ends, rank_), length = part_length(ends, rank_), first = part_length(ends, 0);
  Messages messages(*this);
  std::byte* const carried = messages.take_memory(rank_ == 0 ? ends.back() : length);
  if (rank_ > 0) {
    if (length > 0) std::memcpy(carried, bytes + begin, length);
    messages.send(carried, length, 0);
  }
  for (int q = 1; q < size_ && rank_ == 0; ++q)
    messages.receive(carried + part_begin(ends, q), part_length(ends, q), q);
  messages.wait();
  if (rank_ == 0 && ends.back() > first) std::memcpy(bytes + first, carried + first, ends.back() - first);
}

void MpiCommunicator::hear() {
  for (;;) {
    int from = -1, length = 0;
    std::array<char, kMostWords> words{};
    check(calls_.hear(&from, words.data(), static_cast<int>(words.size()), &length), "listening");
    if (from < 0) return;
    const std::string_view told(words.data(), static_cast<std::size_t>(length));
    words_[static_cast<std::size_t>(from)] = {.reason = std::string(told.substr(std::min<std::size_t>(1, told.size()))),
                                              .unfinished = told.starts_with(kUnfinished)};
    if (first_words_ < 0) first_words_ = from;
  }
}

bool MpiCommunicator::has_gone(int rank) const {
  const Place &own = places_[static_cast<std::size_t>(rank_)], &other = places_[static_cast<std::size_t>(rank)];
  if (own.processes.empty() || other.processes != own.processes) return false;
  if (::kill(other.process, 0) != 0) return errno == ESRCH;
  return is_dead(other.process);
}

void MpiCommunicator::look_at_neighbours() const {
  for (int q = 0; q < size_; ++q)
    if (has_gone(q))
      throw RankError(
          text("ranks: all must stay until the end, got ", described(q), ", which has gone without a word"));
}

void MpiCommunicator::wait(const std::function<bool()>& arrived, const std::function<int()>& late) {
  const Clock::time_point began = Clock::now();
  Clock::time_point look = began + milliseconds(2), look_at_processes = began + milliseconds(250), ended{};
  while (!arrived()) {
    const Clock::time_point now = Clock::now();
    if (now >= look) {
      look = now + milliseconds(2);
      hear();
      if (first_words_ >= 0 && ended == Clock::time_point{}) ended = now;
    }
    const bool expired = duration<double>(now - began).count() > limits_.seconds;
    // What it sent before its last words may still arrive, and all may come to the same end.
    if (first_words_ >= 0 && (expired || now - ended > kGrace)) {
      const int q = late();
      if (expired || q < 0 || words_[static_cast<std::size_t>(q)])
        throw RankError(text(described(first_words_), ": ", words_[static_cast<std::size_t>(first_words_)]->reason));
    }
    if (now >= look_at_processes) {
      look_at_processes = now + milliseconds(250);
      look_at_neighbours();
    }
    if (expired) {
      const int q = late();
      throw RankError(text("ranks: ", q < 0 ? std::string("another rank") : described(q), " must answer within ",
                           limits_.seconds,
                           " s, got no answer\n  ENGRAM_RANK_TIMEOUT, in seconds, lets ranks wait longer"));
    }
    const microseconds pause = pause_after(now - began);
    if (pause.count() == 0)
      ::sched_yield();
    else
      std::this_thread::sleep_for(pause);
  }
}

bool MpiCommunicator::all_end_with(std::string_view reason, double seconds) {
  const std::string own(reason.substr(0, kMostWords - 1));
  const bool unfinished = on_their_way_ > 0;
  const std::string told = std::string(1, unfinished ? kUnfinished : kNothingLeft) + own;
  for (int q = 0; q < size_; ++q)
    if (q != rank_) calls_.tell(told.data(), static_cast<int>(told.size()), q);
  words_[static_cast<std::size_t>(rank_)] = {.reason = own, .unfinished = unfinished};
  const Clock::time_point began = Clock::now();
  const auto past = [&](double share) { return duration<double>(Clock::now() - began).count() > share * seconds; };
  const auto is_other = [&](const auto& words) { return words && words->reason != own; };
  const auto has_come = [](const auto& words) { return words.has_value(); };
  const auto nobody_comes = [&] {
    for (int q = 0; q < size_; ++q)
      if (!words_[static_cast<std::size_t>(q)] && (!has_gone(q) || Clock::now() - began < kLauncherTime)) return false;
    return true;
  };
  while (!nobody_comes() && std::ranges::none_of(words_, is_other) && !past(1)) {
    std::this_thread::sleep_for(milliseconds(1));
    hear();
  }
  if (std::ranges::all_of(words_, has_come) && std::ranges::none_of(words_, is_other)) return true;
  // One speaks for all that say the same, and ends them.
  const auto first = static_cast<int>(std::ranges::find_if(words_, has_come) - words_.begin());
  if (first == rank_ || is_other(words_[static_cast<std::size_t>(first)])) return false;
  while (!past(2) && !has_gone(first)) std::this_thread::sleep_for(milliseconds(5));
  std::_Exit(1);
}

bool MpiCommunicator::can_end() const {
  return on_their_way_ == 0 &&
         std::ranges::none_of(words_, [](const auto& words) { return words && words->unfinished; });
}

void MpiCommunicator::check_others() {
  hear();
  if (first_words_ >= 0)
    throw RankError(text(described(first_words_), ": ", words_[static_cast<std::size_t>(first_words_)]->reason));
  look_at_neighbours();
}

void MpiCommunicator::abort(int code) {
  // mpirun may be busy with a rank's death, and then wait for a minute before it answers.
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::_Exit(code);
  }).detach();
  calls_.abort(code);
  std::_Exit(code);
}

}  // namespace engram::cpu
