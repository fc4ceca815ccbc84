#pragma once
/// Ranks with a card each: what they exchange goes from card to card by NCCL, on a stream of its own beside that of the
/// step. Events keep the order of the two, so that the host waits for neither.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/communicator.hpp"
#include "cuda/card/nccl_comm.hpp"
#include "cuda/card/stream.hpp"
#include "cuda/card/waiting.hpp"

namespace engram::card {

class NcclCommunicator final : public Communicator {
 public:
  /// The ranks of `host`, which carries what lies on the host. `step`: the stream that has the order of a step.
  /// `waiting`: where the host waits for that stream; it looks after the other ranks there. All must outlive it.
  /// Collective. Throws what NcclComm does.
  NcclCommunicator(Communicator& host, const Nccl& library, cudaStream_t step, Waiting& waiting);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string place(int rank) const override { return host_.place(rank); }
  /// What is started begins after everything that was handed to the step's stream before. Throws RankError.
  std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                           PartEnds receive_ends) override;
  std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) override;
  void gather_host(const void* own, std::size_t bytes, void* all) override { host_.gather_host(own, bytes, all); }
  void collect_host(void* all, PartEnds ends) override { host_.collect_host(all, ends); }
  bool all_end_with(std::string_view reason, double seconds) override { return host_.all_end_with(reason, seconds); }
  bool can_end() const override { return host_.can_end(); }
  [[noreturn]] void abort(int code) override;
  bool give_up() override {
    comm_.abort();
    return host_.give_up();
  }
  /// The start functions follow by themselves.
  void follow(Backend&) override {}
  void check_others() override { host_.check_others(); }
  double deadline() const override { return host_.deadline(); }

 private:
  class OnItsWay;
  void begin();
  std::unique_ptr<Transfer> begun();

  Communicator& host_;
  cudaStream_t step_;
  Waiting& waiting_;
  Stream stream_;
  Event handed_over_;
  std::vector<std::unique_ptr<Event>> unused_;  // of transfers that are complete
  NcclComm comm_;                               // ends before the stream
};

}  // namespace engram::card
