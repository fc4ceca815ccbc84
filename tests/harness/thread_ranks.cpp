#include "tests/harness/thread_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace engram {
namespace {

/// What has been brought is taken in advance() or wait(), so that tests see what happens to memory that is used too
/// early.
class Meeting final : public Transfer {
 public:
  using Take = std::function<void(const std::vector<RankMeeting::Brought>&)>;
  Meeting(RankMeeting& meeting, int rank, RankMeeting::Brought brought, Take take)
      : meeting_(&meeting), exchange_(meeting.start(rank, std::move(brought))), take_(std::move(take)) {}
  bool advance() override { return done_ = done_ || meeting_->take(*exchange_, take_, false); }
  void wait() override { done_ = done_ || meeting_->take(*exchange_, take_, true); }

 private:
  RankMeeting* meeting_;
  std::shared_ptr<RankMeeting::Exchange> exchange_;
  Take take_;  // empty: it has been called
  bool done_ = false;
};

}  // namespace

void collect_by_gathering(Communicator& ranks, void* all, PartEnds ends) {
  std::size_t longest = 0;
  for (int q = 0; q < ranks.size(); ++q) longest = std::max(longest, part_length(ends, q));
  if (longest == 0) return;
  auto* const bytes = static_cast<std::byte*>(all);
  const int mine = ranks.rank();
  std::vector<std::byte> own(longest), gathered(longest * ends.size());
  std::copy_n(bytes + part_begin(ends, mine), part_length(ends, mine), own.begin());
  ranks.gather_host(own.data(), longest, gathered.data());
  for (int q = 0; q < ranks.size() && ranks.leads(); ++q)
    std::copy_n(gathered.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(q) * longest),
                part_length(ends, q), bytes + part_begin(ends, q));
}

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

std::shared_ptr<RankMeeting::Exchange> RankMeeting::start(int rank, Brought brought) {
  const std::lock_guard lock(mutex_);
  const auto own = static_cast<std::size_t>(rank);
  const unsigned long number = started_[own]++;
  std::shared_ptr<Exchange>& here = missed_[number];
  if (!here) here = std::make_shared<Exchange>(Exchange{.brought = std::vector<Brought>(brought_.size())});
  const std::shared_ptr<Exchange> exchange = here;
  exchange->brought[own] = std::move(brought);
  if (++exchange->here == count()) missed_.erase(number);
  all_here_.notify_all();
  return exchange;
}

bool RankMeeting::take(Exchange& exchange, std::function<void(const std::vector<Brought>&)>& take, bool waits) {
  std::unique_lock lock(mutex_);
  const auto come_to = [&](const int& number) {
    if (waits) all_here_.wait(lock, [&] { return number == count() || ended_; });
    if (number < count() && waits) throw RankError("ranks: all must come to a meeting, got one that has ended");
    return number == count();
  };
  if (!come_to(exchange.here)) return false;
  if (take) {
    std::exchange(take, nullptr)(exchange.brought);
    ++exchange.taken;
    all_here_.notify_all();
  }
  return come_to(exchange.taken);
}

bool RankMeeting::all_end_with(int rank, std::string_view reason, double seconds) {
  std::unique_lock lock(mutex_);
  words_[static_cast<std::size_t>(rank)] = reason;
  all_here_.notify_all();
  const auto differs = [&] {
    return std::ranges::any_of(words_, [&](const auto& words) { return words && *words != reason; });
  };
  const auto all_have_come = [&] {
    return std::ranges::all_of(words_, [](const auto& words) { return words.has_value(); });
  };
  all_here_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return differs() || all_have_come(); });
  if (all_have_come() && !differs()) return true;
  const auto first = std::ranges::find_if(words_, [](const auto& words) { return words.has_value(); });
  if (first - words_.begin() == rank || **first != reason) return false;
  throw RankError("ranks: another one says what all do, and ends them");
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
  const auto take = [this, receive, ends](const std::vector<RankMeeting::Brought>& all) {
    for (int q = 0; q < size(); ++q) {
      if (q == rank_) continue;
      const RankMeeting::Brought& from = all[static_cast<std::size_t>(q)];
      if (part_length(from.send_ends, rank_) != part_length(ends, q))
        throw Error(text("ranks: rank ", rank_, " must receive as much as rank ", q, " sends, got room for ",
                         part_length(ends, q), " bytes and ", part_length(from.send_ends, rank_)));
      if (part_length(ends, q) > 0)
        std::memcpy(static_cast<std::byte*>(receive) + part_begin(ends, q),
                    from.send + part_begin(from.send_ends, rank_), part_length(ends, q));
    }
  };
  return std::make_unique<Meeting>(*meeting_, rank_, std::move(brought), take);
}

std::unique_ptr<Transfer> ThreadRank::start_gather(void* all, PartEnds part_ends) {
  std::vector<std::size_t> ends(part_ends.begin(), part_ends.end());
  const auto take = [this, all, ends](const std::vector<RankMeeting::Brought>& brought) {
    for (int q = 0; q < size(); ++q) {
      const RankMeeting::Brought& from = brought[static_cast<std::size_t>(q)];
      if (from.send_ends != ends) throw Error("ranks: the ends of a gathering must be equal everywhere");
      if (q != rank_ && part_length(ends, q) > 0)
        std::memcpy(static_cast<std::byte*>(all) + part_begin(ends, q), from.send + part_begin(ends, q),
                    part_length(ends, q));
    }
  };
  return std::make_unique<Meeting>(*meeting_, rank_, RankMeeting::Brought{static_cast<const std::byte*>(all), ends},
                                   take);
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

bool ThreadRank::all_end_with(std::string_view reason, double seconds) {
  return meeting_->all_end_with(rank_, reason, seconds);
}

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
