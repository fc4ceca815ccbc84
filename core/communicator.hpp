#pragma once
/// Several processes that train one model together: its ranks, numbered from 0. They call the same collective functions
/// in the same order. What carries the bytes is a library (MPI, NCCL); implementations register themselves when the
/// program starts or are loaded when it was started as one of several, and nothing includes them.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/exchange_costs.hpp"

namespace engram {

class Backend;

/// Another rank failed, differs from this one, or did not answer within the deadline. The message names it.
class RankError : public Error {
 public:
  using Error::Error;
};

/// Bytes on their way. Their memory must stay until wait() returned or advance() said true, or for good where that does
/// not happen: Communicator::give_up() says when.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Lets it go on, and says whether it is complete. To be called now and then while other work is done.
  virtual bool advance() = 0;
  /// What the host does, or hands to the device, from here on finds the bytes there. The host itself waits for them,
  /// but not where a library carries memory of a device that works behind it. Throws RankError after the deadline.
  virtual void wait() = 0;
};

/// Where the parts of a buffer end, in bytes from its beginning, one for each rank, ascending: part q lies before
/// ends[q] and begins at ends[q - 1], the first at 0. A part may be empty.
using PartEnds = std::span<const std::size_t>;
inline std::size_t part_begin(PartEnds ends, int part) {
  return part == 0 ? 0 : ends[static_cast<std::size_t>(part) - 1];
}
inline std::size_t part_length(PartEnds ends, int part) {
  return ends[static_cast<std::size_t>(part)] - part_begin(ends, part);
}

/// The name of this machine; "?" where the system does not say it.
std::string host_name();

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  ///< in [0, size())
  virtual int size() const = 0;  ///< at least 1
  /// Where a rank runs, for messages: its host and process.
  virtual std::string place(int rank) const = 0;

  /// Part q of `send` goes to rank q and arrives there as part rank() of `receive`: as many bytes as the sender has for
  /// it. Nothing goes from a rank to itself: part rank() of `receive` stays as it is, and may be empty when that of
  /// `send` is not. Both are memory of the device that the ranks compute on; in_step() puts it after what was handed to
  /// that device before.
  virtual std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                                   PartEnds receive_ends) = 0;
  /// Part rank() of `all` is this rank's; the others become what the other ranks have there. Ends are equal everywhere.
  virtual std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) = 0;

  /// Numbers of the host: all[q] of `bytes` bytes each becomes what rank q has as its own.
  virtual void gather_host(const void* own, std::size_t bytes, void* all) = 0;
  /// Memory of the host, in parts: on rank 0, part q becomes what rank q has there.
  virtual void collect_host(void* all, PartEnds ends) = 0;
  /// What every rank says when it is about to end for the reason that an exception gives: whether all have come to say
  /// the same before so many seconds are over. It takes no part in the order of the other functions.
  virtual bool all_end_with(std::string_view reason, double seconds) = 0;
  /// After all_end_with() said true: whether nothing is on its way on any rank. Else no rank can end in order, and rank
  /// 0 is to end all by abort().
  virtual bool can_end() const { return true; }
  /// Ends all ranks at once, with this exit code where the library can say so.
  [[noreturn]] virtual void abort(int code) = 0;
  /// For whoever goes because of an exception, before the memory of its transfers does: ends what has not arrived,
  /// where the library can. Returns whether that memory may go; else it must stay as long as the process. What takes
  /// memory of the host for the time of a call, such as gather_host(), sees to it by itself.
  virtual bool give_up() { return true; }

  /// What is started from here on begins after all that was handed to the device before: here the host waits for it,
  /// as what carries memory of the host must.
  virtual void follow(Backend& backend);
  /// Throws RankError when it is known that another rank has ended. It waits for nothing, and takes no part in the
  /// order of the other functions: for whoever waits for something that only the others can complete.
  virtual void check_others() {}
  /// Seconds until a rank that others wait for is given up; above 0.
  virtual double deadline() const { return 600; }

  // Made of the above.
  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }  ///< the rank that writes files and speaks
  /// "rank 2 (host, process 4711)".
  std::string name(int rank) const;
  /// What all ranks say, in their order.
  std::vector<std::string> gather_texts(std::string_view own);
  /// Whether it is true on any rank.
  bool any(bool own);
  /// What differs between what two ranks have said, whose names come after it.
  using Difference = std::function<std::string(const std::string& first, const std::string& other,
                                               const std::string& on_first, const std::string& on_other)>;
  /// Whether every rank says the same. Otherwise throws UsageError, the same on all ranks, that names the first one
  /// that differs from rank 0: "ranks: `what` must be the same everywhere, got", and the `difference`; none: both
  /// texts. `advice`: what to do, a line; empty: nothing is said.
  void require_same(std::string_view what, std::string_view own, std::string_view advice = {},
                    const Difference& difference = {});
  /// Calls `calls`, which start transfers of what a step computes, at this place of the step: after what was handed to
  /// the device before, and again in every replay of the step (Backend::between()).
  void in_step(Backend& backend, std::function<void()> calls);
};

/// Calls `work`, which calls no collective function. When it threw on a rank, all ranks throw, with one message, once
/// all have come here: that of the first rank that threw. Where all threw the same, each throws what it threw. Where
/// rank 0 threw, it does, and the others throw a RankError; else all throw a RankError that names the rank. In place of
/// a RankError it is a UsageError or a NotFiniteError where that was one: after it ranks may go on together.
void together(Communicator& ranks, const std::function<void()>& work);

/// Calls `work`, which uses `memory`. When it throws, all that is on its way is given up, and memory that a library may
/// still touch stays until the process ends.
template <class Memory>
void outlive_transfers(std::unique_ptr<Memory>& memory, Communicator& ranks, const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    if (!ranks.give_up()) (void)memory.release();
    throw;
  }
}

/// A buffer of which every rank has its part; ends are equal everywhere.
struct PartedBuffer {
  void* all = nullptr;
  std::vector<std::size_t> ends;
};
/// Of every buffer all ranks get the parts that they do not have, at this place of a step (Communicator::in_step).
/// `costs`: added to what is there, in every run of the step; it must outlive them. nullptr: nobody asks.
void gather_in_step(Communicator& ranks, Backend& backend, std::vector<PartedBuffer> buffers,
                    ExchangeCosts* costs = nullptr);

/// One process that has no others: the collective functions copy.
class OneRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string place(int rank) const override;
  /// Throws Error: there is no one to exchange with, and who is alone has its part already.
  std::unique_ptr<Transfer> start_exchange(const void*, PartEnds, void*, PartEnds) override;
  std::unique_ptr<Transfer> start_gather(void*, PartEnds) override;
  void gather_host(const void* own, std::size_t bytes, void* all) override;
  void collect_host(void*, PartEnds) override {}
  bool all_end_with(std::string_view, double) override { return true; }
  [[noreturn]] void abort(int code) override;
};

}  // namespace engram
