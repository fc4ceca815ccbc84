#include "nn/optim/gradient_exchange.hpp"

#include <utility>

#include "autograd/rank_exchange.hpp"

namespace engram {

GradientExchange::GradientExchange(ParameterStore& store, const std::vector<Bucket>& buckets, Communicator& ranks)
    : ranks_(&ranks) {
  if (ranks.alone()) return;
  const int rank = ranks.rank();
  for (const Bucket& bucket : buckets) {
    const Tensor& block = store.groups()[bucket.group].gradients;
    const std::int64_t own = bucket.end_of(rank) - bucket.begin_of(rank);
    const auto bytes = [&block](std::int64_t count) {
      return static_cast<std::size_t>(count) * size_of(block.dtype());
    };
    Pending pending;
    pending.gradients = block.rows(bucket.begin, bucket.end);
    pending.bytes_sent = static_cast<std::int64_t>(bytes(bucket.end - bucket.begin - own));
    if (own > 0)
      pending.received = Tensor({(ranks.size() - 1) * own}, block.dtype(), block.device(), store.allocator());
    std::int64_t received = 0;
    for (int q = 0; q < ranks.size(); ++q) {
      if (q == rank) {
        pending.parts.push_back(block.rows(bucket.begin_of(rank), bucket.end_of(rank)));
      } else if (own > 0) {
        pending.parts.push_back(pending.received.rows(received, received + own));
        received += own;
      }
      pending.send_ends.push_back(bytes(bucket.end_of(q) - bucket.begin));
      pending.receive_ends.push_back(bytes(received));
    }
    buckets_.push_back(std::move(pending));
  }
}

void GradientExchange::start(Step& step, std::size_t number) {
  ranks_->in_step(step.backend(), [this, &pending = buckets_.at(number)] {
    if (on_their_way_++ == 0) began_ = clock_.seconds();
    costs_.bytes_sent += pending.bytes_sent;
    pending.transfer =
        ranks_->start_exchange(pending.gradients.raw(), pending.send_ends,
                               pending.received ? pending.received.raw() : nullptr, pending.receive_ends);
  });
}

void GradientExchange::advance() {
  for (Pending& pending : buckets_)
    if (pending.transfer != nullptr && pending.transfer->advance()) arrive(pending);
}

void GradientExchange::arrive(Pending& pending) {
  pending.transfer.reset();
  if (--on_their_way_ == 0) costs_.seconds += clock_.seconds() - began_;
}

void GradientExchange::wait(Pending& pending) {
  if (pending.transfer == nullptr) return;
  const double before = clock_.seconds();
  pending.transfer->wait();
  costs_.seconds_waited += clock_.seconds() - before;
  arrive(pending);
}

void GradientExchange::finish(Step& step) {
  for (Pending& pending : buckets_) {
    step.backend().between([this, &pending] { wait(pending); });
    if (pending.received) sum_by_tree(step, pending.parts, static_cast<std::size_t>(ranks_->rank()));
  }
}

}  // namespace engram
