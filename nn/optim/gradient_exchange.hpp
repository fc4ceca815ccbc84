#pragma once
/// Sums gradients over the ranks: of every bucket (nn/optim/shards.hpp) each rank receives its own part from all others
/// and adds the parts up by a fixed tree over the numbers of the ranks, so that the sums are ours and not a library's.

#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/communicator.hpp"
#include "core/exchange_costs.hpp"
#include "core/stopwatch.hpp"
#include "nn/optim/shards.hpp"

namespace engram {

class GradientExchange {
 public:
  /// All must outlive it; the store is placed. Takes memory for what a rank receives: as much as all gradients, less
  /// the rank's own part. One rank: none.
  GradientExchange(ParameterStore& store, const std::vector<Bucket>& buckets, Communicator& ranks);

  /// This rank's gradients of the bucket are final: they leave. All ranks start all buckets in the same order.
  void start(Step& step, std::size_t bucket);
  /// Lets what is on its way go on.
  void advance();
  /// All buckets have been started. Waits for them and adds up: the rank's own part of every bucket of the gradients
  /// becomes the sum over all ranks; everything else is as it was.
  void finish(Step& step);

  const ExchangeCosts& costs() const { return costs_; }

 private:
  struct Pending {
    std::unique_ptr<Transfer> transfer;  // none: not started, or complete
    std::vector<std::size_t> send_ends, receive_ends;
    std::int64_t bytes_sent = 0;
    Tensor gradients;           // the bucket
    Tensor received;            // the others' parts for this rank, one after the other; none: its part is empty
    std::vector<Tensor> parts;  // those and the rank's own, in the order of the ranks
  };
  void wait(Pending& pending);
  void arrive(Pending& pending);

  Communicator* ranks_;
  std::vector<Pending> buckets_;
  ExchangeCosts costs_;
  Stopwatch clock_;
  std::int64_t on_their_way_ = 0;  // buckets
  double began_ = 0;               // on the clock: when the first of those did
};

}  // namespace engram
