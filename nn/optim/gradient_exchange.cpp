#include "nn/optim/gradient_exchange.hpp"

#include <utility>

#include "core/kernels/copy.hpp"

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

void gather_sum(Step& step, const Tensor& own, Communicator& ranks) {
  const std::int64_t count = own.count();
  const Tensor all = step.empty({ranks.size() * count}, own.dtype());
  std::vector<Tensor> parts;
  std::vector<std::size_t> ends;
  for (int q = 0; q < ranks.size(); ++q) {
    parts.push_back(all.rows(q * count, (q + 1) * count));
    ends.push_back(static_cast<std::size_t>(q + 1) * own.bytes());
  }
  const Tensor& here = parts[static_cast<std::size_t>(ranks.rank())];
  step.backend().copy(here.raw(), own.raw(), own.bytes(), CopyKind::device_to_device);
  gather_in_step(ranks, step.backend(), {{all.raw(), ends}});
  sum_by_tree(step, parts, static_cast<std::size_t>(ranks.rank()));
  step.backend().copy(own.raw(), here.raw(), own.bytes(), CopyKind::device_to_device);
}

void sum_by_tree(Step& step, std::vector<Tensor> parts, std::size_t own) {
  // a + b and b + a have the same bits, so that every sum may be where the own part was, as soon as it is in it.
  for (std::size_t stride = 1; stride < parts.size(); stride *= 2) {
    for (std::size_t left = 0; left + stride < parts.size(); left += 2 * stride) {
      Tensor &first = parts[left], &second = parts[left + stride];
      const bool to_second = own >= left + stride && own < left + 2 * stride;
      const Tensor& target = to_second ? second : first;
      kernels::accumulate(step, to_second ? first : second, 1.0, {target, Write::add});
      first = target;
    }
  }
}

}  // namespace engram
