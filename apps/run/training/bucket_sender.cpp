#include "apps/run/training/bucket_sender.hpp"

#include <algorithm>

namespace engram {

BucketSender::BucketSender(ParameterStore& store, const std::vector<Bucket>& buckets, PieceSums& sums,
                           Communicator& ranks)
    : buckets_(&buckets),
      sums_(&sums),
      ranks_(&ranks),
      exchange_(store, buckets, ranks),
      parameters_(buckets.size()),
      left_(buckets.size()) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const ParameterGroup& group = store.groups()[buckets[b].group];
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      if (group.segments[i].offset < buckets[b].begin || group.segments[i].offset >= buckets[b].end) continue;
      bucket_of_[group.parameters[i]] = b;
      ++parameters_[b];
    }
  }
}

void BucketSender::begin(Step& step) {
  step_ = &step;
  left_ = parameters_;
  ready_.clear();
  started_ = 0;
}

void BucketSender::final_gradient(Parameter& parameter) {
  const std::size_t bucket = bucket_of_.at(&parameter);
  if (--left_[bucket] > 0) return;
  if (order_.empty())
    ready_.push_back(static_cast<std::int32_t>(bucket));
  else
    start_ready();
}

void BucketSender::start_ready() {
  for (; started_ < order_.size() && left_[static_cast<std::size_t>(order_[started_])] == 0; ++started_)
    start(static_cast<std::size_t>(order_[started_]));
}

void BucketSender::start(std::size_t number) {
  const Bucket& bucket = (*buckets_)[number];
  sums_->finish(*step_, bucket.group, bucket.begin, bucket.end);
  exchange_.start(*step_, number);
}

void BucketSender::finish() {
  if (order_.empty()) settle_order();
  // A parameter that a step makes no use of was never said to be final.
  for (; started_ < order_.size(); ++started_) start(static_cast<std::size_t>(order_[started_]));
  exchange_.finish(*step_);
}

void BucketSender::settle_order() {
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(buckets_->size()); ++b)
    if (std::ranges::find(ready_, b) == ready_.end()) ready_.push_back(b);
  std::vector<std::int32_t> all(ready_.size() * static_cast<std::size_t>(ranks_->size()));
  ranks_->gather_host(ready_.data(), ready_.size() * sizeof(std::int32_t), all.data());
  order_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(ready_.size()));
}

}  // namespace engram
