#pragma once
/// Ranks of which only one is there, for a run that counts its memory (core/counting_backend.hpp): nothing is sent, and
/// what numbers of the host others would have said is what this one says.

#include <string>

#include "core/communicator.hpp"

namespace engram {

class CountingRanks final : public Communicator {
 public:
  /// rank in [0, size).
  CountingRanks(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string place(int rank) const override { return text("rank ", rank, " that is not there"); }
  std::unique_ptr<Transfer> start_exchange(const void*, PartEnds, void*, PartEnds) override;
  std::unique_ptr<Transfer> start_gather(void*, PartEnds) override;
  void gather_host(const void* own, std::size_t bytes, void* all) override;
  void collect_host(void*, PartEnds) override {}
  bool all_end_with(std::string_view, double) override { return true; }
  [[noreturn]] void abort(int code) override;

 private:
  int rank_, size_;
};

}  // namespace engram
