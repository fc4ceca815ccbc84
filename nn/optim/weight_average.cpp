#include "nn/optim/weight_average.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "nn/optim/parameter_blocks.hpp"

namespace engram {

void WeightAverage::require_started(const char* what) const {
  if (!started()) throw Error(text("weight average: ", what, " needs start() before it, got none"));
  if (swapped_) throw Error(text("weight average: ", what, " needs the trained weights, got the mean in their place"));
}

void WeightAverage::start(Step& step) {
  if (swapped_) throw Error("weight average: start needs the trained weights, got the mean in their place");
  if (!started()) {
    for (std::vector<Tensor>* blocks : {&kept_, &sums_})
      for (const ParameterGroup& group : store_->groups())
        blocks->emplace_back(group.values.shape(), group.values.dtype(), group.values.device(), store_->allocator());
  }
  for (Tensor& sum : sums_) kernels::fill(step, sum, 0.0);
  updates_ = 0;
}

void WeightAverage::add(Step& step) {
  require_started("add");
  const auto& groups = store_->groups();
  for (std::size_t g = 0; g < groups.size(); ++g)
    kernels::accumulate(step, groups[g].values, 1.0, sums_[g], Write::add);
  ++updates_;
}

void WeightAverage::swap(Step& step) {
  if (updates_ == 0) throw Error("weight average: a mean must be of one update at least, got 0");
  auto& groups = store_->groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (swapped_) {
      kernels::accumulate(step, kept_[g], 1.0, groups[g].values, Write::set);
    } else {
      kernels::accumulate(step, groups[g].values, 1.0, kept_[g], Write::set);
      kernels::accumulate(step, sums_[g], 1.0 / static_cast<double>(updates_), groups[g].values, Write::set);
    }
  }
  swapped_ = !swapped_;
  store_->refresh_rounded(step);
}

void WeightAverage::visit_state(const Optimizer::StateFound& found) const {
  if (started()) visit_blocks(*store_, sums_, "weight_sum", found);
}

void WeightAverage::restore(std::int64_t updates) {
  require_started("restore");
  if (updates < 0) throw UsageError(text("weight average: a number of updates must be at least 0, got ", updates));
  updates_ = updates;
}

void AveragingTrigger::add(double loss) {
  const auto seen = static_cast<std::int64_t>(losses_.size());
  if (seen > recent_) reached_ = reached_ || loss >= *std::min_element(losses_.begin(), losses_.end() - recent_);
  losses_.push_back(loss);
}

void AveragingTrigger::restore(std::span<const double> losses) {
  const std::vector<double> all(losses.begin(), losses.end());  // `losses` may be state() of this one
  losses_.clear();
  reached_ = false;
  for (const double loss : all) add(loss);
}

}  // namespace engram
