#pragma once
/// Ranks that are processes and talk through MPI, on memory of the host: for the devices cpu and simulated.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.hpp"
#include "cpu/ranks/mpi_calls.hpp"

namespace engram::cpu {

struct MpiLimits {
  double seconds = 600;  ///< until a rank that others wait for is given up
  /// A message has at most so many bytes; longer parts are cut. MPI counts in int.
  std::size_t message_bytes = std::size_t{1} << 30;
};

class MpiCommunicator final : public Communicator {
 public:
  /// `calls` have begun: this is `rank` of `size`. Collective.
  MpiCommunicator(const EngramMpiCalls& calls, int rank, int size, const MpiLimits& limits);
  /// Ends MPI, collectively. Where messages of any rank are still on their way, as after a failure, MPI cannot end in
  /// order: rank 0, if it has not yet, ends all ranks, with code 1, and the others wait for that.
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string place(int rank) const override;
  std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                           PartEnds receive_ends) override;
  std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) override;
  void gather_host(const void* own, std::size_t bytes, void* all) override;
  void collect_host(void* all, PartEnds ends) override;
  /// Where not all have come with one reason, of those that say the same the lowest returns: it is to speak and to
  /// abort all. The others wait for that, and end by themselves after twice the seconds.
  bool all_end_with(std::string_view reason, double seconds) override;
  bool can_end() const override;
  [[noreturn]] void abort(int code) override;
  /// MPI can take back nothing.
  bool give_up() override { return on_their_way_ == 0; }
  void check_others() override;
  double deadline() const override { return limits_.seconds; }

 private:
  class Messages;
  using Clock = std::chrono::steady_clock;
  /// Where a rank runs, and by what its neighbours see that it does.
  struct Place {
    std::string host;
    std::string processes;  // the system and the namespace in which its number is a process's
    pid_t process = 0;
  };

  /// What a rank ends with, and whether messages of it are on their way.
  struct LastWords {
    std::string reason;
    bool unfinished = false;
  };

  void learn_places();
  std::string described(int rank) const;
  void check(int code, const char* what) const;
  /// Takes what other ranks said at their end.
  void hear();
  /// Whether its process is seen to be no longer there: that of a rank of this host.
  bool has_gone(int rank) const;
  /// Throws RankError when one has.
  void look_at_neighbours() const;
  /// Returns when `arrived` says true. Throws RankError when the rank that `late` names, which is waited for, has
  /// ended, with the first rank's words that did, when one of this host has gone, and after the deadline.
  void wait(const std::function<bool()>& arrived, const std::function<int()>& late);

  const EngramMpiCalls& calls_;
  const int rank_, size_;
  const MpiLimits limits_;
  std::vector<Place> places_;
  std::vector<std::optional<LastWords>> words_;              // of each that has ended
  int first_words_ = -1;                                     // the rank whose were heard first
  int on_their_way_ = 0;                                     // messages that have not arrived
  std::vector<std::unique_ptr<std::byte[]>> in_mpis_hands_;  // memory of those that nobody waits for any more
};

}  // namespace engram::cpu
