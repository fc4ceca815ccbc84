#pragma once
/// A rank that counts what it sends.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/communicator.hpp"

namespace engram::harness {

class CountedRank final : public Communicator {
 public:
  /// Bytes, and messages to one rank each.
  struct Sent {
    std::int64_t exchanged = 0, gathered = 0, messages = 0;
  };

  explicit CountedRank(Communicator& rank) : rank_(&rank) {}
  const Sent& sent() const { return sent_; }

  int rank() const override { return rank_->rank(); }
  int size() const override { return rank_->size(); }
  std::string place(int rank) const override { return rank_->place(rank); }
  std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                           PartEnds receive_ends) override {
    for (int q = 0; q < size(); ++q)
      if (q != rank()) count(sent_.exchanged, part_length(send_ends, q));
    return rank_->start_exchange(send, send_ends, receive, receive_ends);
  }
  std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) override {
    for (int others = size() - 1; others > 0; --others) count(sent_.gathered, part_length(ends, rank()));
    return rank_->start_gather(all, ends);
  }
  void gather_host(const void* own, std::size_t bytes, void* all) override {
    for (int others = size() - 1; others > 0; --others) count(sent_.gathered, bytes);
    rank_->gather_host(own, bytes, all);
  }
  void collect_host(void* all, PartEnds ends) override { rank_->collect_host(all, ends); }
  bool all_end_with(std::string_view reason, double seconds) override { return rank_->all_end_with(reason, seconds); }
  [[noreturn]] void abort(int code) override {
    rank_->abort(code);
    throw RankError(text("ranks: an abort with code ", code, " must end all"));
  }

 private:
  void count(std::int64_t& sum, std::size_t bytes) {
    sum += static_cast<std::int64_t>(bytes);
    if (bytes > 0) ++sent_.messages;
  }

  Communicator* rank_;
  Sent sent_;
};

}  // namespace engram::harness
