#pragma once
/// NCCL's own communicator: how its ranks find each other, what they hand to a stream, and how one that fails, or whose
/// neighbours do, comes to its end instead of waiting for ever.

#include <cstddef>
#include <functional>
#include <string>

#include "core/communicator.hpp"
#include "cuda/card/nccl.hpp"

namespace engram::card {

class NcclComm {
 public:
  /// The ranks of `host`, over which they find each other; each has a card of its own, that of its calling thread.
  /// Both must outlive it. Collective. Throws RankError, and what the host's communicator throws.
  NcclComm(const Nccl& library, Communicator& host);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  /// As Communicator::start_exchange and start_gather, in the order of the stream. Throw RankError.
  void exchange(const void* send, PartEnds send_ends, void* receive, PartEnds receive_ends, cudaStream_t stream);
  void gather(void* all, PartEnds ends, cudaStream_t stream);

  /// Whether all is well, for whoever has waited so many seconds for what others must complete. Throws RankError, after
  /// which the stream does not wait any more, when NCCL has failed, another rank has ended, or it was too long.
  void look(double seconds);
  /// Ends what is on its way.
  void abort();

 private:
  /// What a call returned that may go on behind it: returns when it is done.
  void settle(ncclResult_t code, const char* what);
  /// Calls what belongs together, until a call is refused, whose code `calls` returns. It throws nothing.
  void group(const char* what, const std::function<ncclResult_t()>& calls);
  void require_whole(const char* what);
  void check(ncclResult_t code, const char* what);
  [[noreturn]] void fail(const std::string& rule);
  std::string others() const;

  const Nccl& library_;
  Communicator& host_;
  ncclComm_t comm_ = nullptr;  // nullptr: aborted
};

}  // namespace engram::card
