#include "tests/harness/thread_ranks.hpp"

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace engram {
namespace {

std::size_t begin_of(PartEnds ends, int part) { return part == 0 ? 0 : ends[static_cast<std::size_t>(part) - 1]; }
std::size_t length_of(PartEnds ends, int part) { return ends[static_cast<std::size_t>(part)] - begin_of(ends, part); }

/// A meeting is due in wait(), so that tests see what happens to memory that is used too early.
class Meeting final : public Transfer {
 public:
  explicit Meeting(std::function<void()> meet) : meet_(std::move(meet)) {}
  bool advance() override { return !meet_; }
  void wait() override {
    if (meet_) std::exchange(meet_, nullptr)();
  }

 private:
  std::function<void()> meet_;
};

}  // namespace

void RankMeeting::wait_for_all(std::unique_lock<std::mutex>& lock) {
  const unsigned long phase = phase_;
  if (++here_ == count()) {
    here_ = 0;
    ++phase_;
    all_here_.notify_all();
  }
  all_here_.wait(lock, [&] { return phase_ != phase || ended_; });
  if (phase_ == phase) throw RankError("ranks: all must come to a meeting, got one that has ended");
}

void RankMeeting::meet(int rank, Brought brought, const std::function<void(const std::vector<Brought>&)>& take) {
  std::unique_lock lock(mutex_);
  brought_[static_cast<std::size_t>(rank)] = std::move(brought);
  wait_for_all(lock);
  take(brought_);
  wait_for_all(lock);
}

void RankMeeting::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  all_here_.notify_all();
}

std::unique_ptr<Transfer> ThreadRank::start_exchange(const void* send, PartEnds send_ends, void* receive,
                                                     PartEnds receive_ends) {
  RankMeeting::Brought brought{static_cast<const std::byte*>(send), {send_ends.begin(), send_ends.end()}};
  std::vector<std::size_t> ends(receive_ends.begin(), receive_ends.end());
  return std::make_unique<Meeting>([this, brought, receive, ends] {
    meeting_->meet(rank_, brought, [&](const std::vector<RankMeeting::Brought>& all) {
      for (int q = 0; q < size(); ++q) {
        if (q == rank_) continue;
        const RankMeeting::Brought& from = all[static_cast<std::size_t>(q)];
        if (length_of(from.send_ends, rank_) != length_of(ends, q))
          throw Error(text("ranks: rank ", rank_, " must receive as much as rank ", q, " sends, got room for ",
                           length_of(ends, q), " bytes and ", length_of(from.send_ends, rank_)));
        if (length_of(ends, q) > 0)
          std::memcpy(static_cast<std::byte*>(receive) + begin_of(ends, q), from.send + begin_of(from.send_ends, rank_),
                      length_of(ends, q));
      }
    });
  });
}

std::unique_ptr<Transfer> ThreadRank::start_gather(void* all, PartEnds part_ends) {
  std::vector<std::size_t> ends(part_ends.begin(), part_ends.end());
  return std::make_unique<Meeting>([this, all, ends] {
    meeting_->meet(rank_, {static_cast<const std::byte*>(all), ends},
                   [&](const std::vector<RankMeeting::Brought>& brought) {
                     for (int q = 0; q < size(); ++q) {
                       const RankMeeting::Brought& from = brought[static_cast<std::size_t>(q)];
                       if (from.send_ends != ends)
                         throw Error("ranks: the ends of a gathering must be equal everywhere");
                       if (q != rank_ && length_of(ends, q) > 0)
                         std::memcpy(static_cast<std::byte*>(all) + begin_of(ends, q), from.send + begin_of(ends, q),
                                     length_of(ends, q));
                     }
                   });
  });
}

void ThreadRank::gather_host(const void* own, std::size_t bytes, void* all) {
  meeting_->meet(
      rank_, {static_cast<const std::byte*>(own), {bytes}}, [&](const std::vector<RankMeeting::Brought>& brought) {
        for (int q = 0; q < size(); ++q) {
          const RankMeeting::Brought& from = brought[static_cast<std::size_t>(q)];
          if (from.send_ends.at(0) != bytes) throw Error("ranks: all must gather as many bytes");
          if (bytes > 0)
            std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(q) * bytes, from.send, bytes);
        }
      });
}

bool ThreadRank::all_end_with(std::string_view, double) { return false; }

void ThreadRank::abort(int code) { throw RankError(text("ranks: aborted with code ", code)); }

void run_ranks(int count, const std::function<void(Communicator& ranks)>& body) {
  RankMeeting meeting(count);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadRank ranks(meeting, rank);
        body(ranks);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      meeting.end();
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace engram
