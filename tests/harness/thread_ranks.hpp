#pragma once
/// Ranks that are threads of one process: what they exchange is copied. For tests, under ThreadSanitizer too.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/communicator.hpp"

namespace engram {

/// Runs `body` on so many threads, each with its rank's communicator, and returns when all have ended. A rank that
/// throws ends all: the others throw RankError where they wait, and the first exception is thrown on here.
void run_ranks(int count, const std::function<void(Communicator& ranks)>& body);

/// Communicator::collect_host by gather_host, for ranks that are not processes.
void collect_by_gathering(Communicator& ranks, void* all, PartEnds ends);

/// What the ranks share: every collective function is a meeting to which each brings pointers.
class RankMeeting {
 public:
  explicit RankMeeting(int count)
      : brought_(static_cast<std::size_t>(count)),
        started_(static_cast<std::size_t>(count)),
        words_(static_cast<std::size_t>(count)) {}

  struct Brought {
    const std::byte* send = nullptr;
    std::vector<std::size_t> send_ends;
  };
  /// Brings something to the next meeting, and returns when all have: `take` is called with what all brought, and what
  /// was brought stays until all have taken. Throws RankError when a rank has ended.
  void meet(int rank, Brought brought, const std::function<void(const std::vector<Brought>&)>& take);
  /// A meeting that ranks come to one by one and leave when all have taken: those that a rank has started are met by
  /// the other ranks' in the order in which they started them.
  struct Exchange {
    std::vector<Brought> brought;
    int here = 0, taken = 0;
  };
  std::shared_ptr<Exchange> start(int rank, Brought brought);
  /// Calls `take`, if it has not been called, as soon as all have brought something. Returns whether all have taken.
  /// `waits`: until they have; throws RankError when a rank has ended before.
  bool take(Exchange& exchange, std::function<void(const std::vector<Brought>&)>& take, bool waits);
  /// Communicator::all_end_with. Throws RankError on those that another rank ends.
  bool all_end_with(int rank, std::string_view reason, double seconds);
  /// This rank comes to no meeting any more.
  void end();
  /// Whether a rank comes to none any more.
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  int count() const { return static_cast<int>(brought_.size()); }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<Brought> brought_;
  int here_ = 0;
  unsigned long phase_ = 0;
  std::vector<unsigned long> started_;                         // by each rank
  std::map<unsigned long, std::shared_ptr<Exchange>> missed_;  // to which not all have come
  std::vector<std::optional<std::string>> words_;              // with which each ends
  bool ended_ = false;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(RankMeeting& meeting, int rank) : meeting_(&meeting), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_->count(); }
  std::string place(int rank) const override { return "thread " + std::to_string(rank); }
  std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                           PartEnds receive_ends) override;
  std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) override;
  void gather_host(const void* own, std::size_t bytes, void* all) override;
  void collect_host(void* all, PartEnds ends) override { collect_by_gathering(*this, all, ends); }
  bool all_end_with(std::string_view reason, double seconds) override;
  [[noreturn]] void abort(int code) override;
  void check_others() override {
    if (meeting_->has_ended()) throw RankError("ranks: all must go on, got one that has ended");
  }

 private:
  RankMeeting* meeting_;
  int rank_;
};

}  // namespace engram
