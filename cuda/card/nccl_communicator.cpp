#include "cuda/card/nccl_communicator.hpp"

#include <cstdlib>
#include <utility>

namespace engram::card {

/// Complete when the stream has passed its event.
class NcclCommunicator::OnItsWay final : public Transfer {
 public:
  OnItsWay(NcclCommunicator& ranks, std::unique_ptr<Event> arrived) : ranks_(&ranks), arrived_(std::move(arrived)) {}
  ~OnItsWay() override { ranks_->unused_.push_back(std::move(arrived_)); }
  OnItsWay(const OnItsWay&) = delete;
  OnItsWay& operator=(const OnItsWay&) = delete;

  bool advance() override {
    passed_ = passed_ || arrived_->has_passed();
    return passed_;
  }
  void wait() override {
    if (!passed_) arrived_->hold_back(ranks_->step_);
    passed_ = true;
  }

 private:
  NcclCommunicator* ranks_;
  std::unique_ptr<Event> arrived_;
  bool passed_ = false;  // for whatever the step's stream gets from now on
};

NcclCommunicator::NcclCommunicator(Communicator& host, const Nccl& library, cudaStream_t step, Waiting& waiting)
    : host_(host), step_(step), waiting_(waiting), comm_(library, host) {
  waiting_.watch([this](double seconds) { comm_.look(seconds); });
}

NcclCommunicator::~NcclCommunicator() { waiting_.watch({}); }

void NcclCommunicator::begin() {
  handed_over_.record(step_);
  handed_over_.hold_back(stream_);
}

std::unique_ptr<Transfer> NcclCommunicator::begun() {
  if (unused_.empty()) unused_.push_back(std::make_unique<Event>());
  std::unique_ptr<Event> arrived = std::move(unused_.back());
  unused_.pop_back();
  arrived->record(stream_);
  return std::make_unique<OnItsWay>(*this, std::move(arrived));
}

std::unique_ptr<Transfer> NcclCommunicator::start_exchange(const void* send, PartEnds send_ends, void* receive,
                                                           PartEnds receive_ends) {
  begin();
  comm_.exchange(send, send_ends, receive, receive_ends, stream_);
  return begun();
}

std::unique_ptr<Transfer> NcclCommunicator::start_gather(void* all, PartEnds ends) {
  begin();
  comm_.gather(all, ends, stream_);
  return begun();
}

void NcclCommunicator::abort(int code) {
  comm_.abort();
  host_.abort(code);
  std::_Exit(code);
}

}  // namespace engram::card
