#pragma once
/// Lets gradients leave for the other ranks while the backward pass of a rank's last piece still runs: a bucket of
/// whole layers starts as soon as nothing will be added to it.

#include <cstdint>
#include <map>
#include <vector>

#include "apps/run/training/piece_sums.hpp"
#include "autograd/tape.hpp"
#include "core/communicator.hpp"
#include "nn/optim/gradient_exchange.hpp"

namespace engram {

class BucketSender final : public BackwardWatcher {
 public:
  /// `sums`: of the groups' gradients, in the order of the groups. All must outlive it.
  BucketSender(ParameterStore& store, const std::vector<Bucket>& buckets, PieceSums& sums, Communicator& ranks);

  /// Before the backward pass of the last piece.
  void begin(Step& step);
  void final_gradient(Parameter& parameter) override;
  void ran() override { exchange_.advance(); }
  /// After it: what has not left leaves. Returns when the gradients of this rank's parts are those of all ranks.
  void finish();

  const ExchangeCosts& costs() const { return exchange_.costs(); }

 private:
  void start_ready();
  void start(std::size_t bucket);
  void settle_order();

  const std::vector<Bucket>* buckets_;
  PieceSums* sums_;
  Communicator* ranks_;
  GradientExchange exchange_;
  std::map<const Parameter*, std::size_t> bucket_of_;
  std::vector<std::int64_t> parameters_, left_;  // of each bucket: all, and those that may still change
  /// In which order they start, on all ranks alike: that in which they became ready on rank 0 the first time.
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> ready_;  // this time, in their order, until order_ is known
  std::size_t started_ = 0;          // of order_
  Step* step_ = nullptr;
};

}  // namespace engram
