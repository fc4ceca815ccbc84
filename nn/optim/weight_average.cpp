#include "nn/optim/weight_average.hpp"

#include <cmath>
#include <limits>
#include <utility>

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
  if (!store_->tables().empty())
    throw UsageError(text("weight average: a mean is kept of parameters with dense gradients, got the table ",
                          store_->tables().front()->name(), "\n  --set training.weight_average=false trains without"));
  if (!started()) {
    // Both or neither, where there is too little memory.
    std::vector<Tensor> kept, means;
    for (std::vector<Tensor>* blocks : {&kept, &means})
      for (const ParameterGroup& group : store_->groups())
        blocks->emplace_back(group.values.shape(), group.values.dtype(), group.values.device(), store_->allocator());
    kept_ = std::move(kept);
    means_ = std::move(means);
  }
  for (Tensor& mean : means_) kernels::fill(step, mean, 0.0);
  updates_ = 0;
}

void WeightAverage::add(Step& step) {
  require_started("add");
  ++updates_;
  // A sum would lose digits: once it is far larger than its terms, equal terms are all rounded alike.
  const double share = 1.0 / static_cast<double>(updates_);
  const auto& groups = store_->groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    kernels::accumulate(step, means_[g], 1.0 - share, {means_[g], Write::set});
    kernels::accumulate(step, groups[g].values, share, {means_[g], Write::add});
  }
}

void WeightAverage::swap(Step& step) {
  if (updates_ == 0) throw Error("weight average: a mean must be of one update at least, got 0");
  auto& groups = store_->groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (swapped_) {
      kernels::accumulate(step, kept_[g], 1.0, {groups[g].values, Write::set});
    } else {
      kernels::accumulate(step, groups[g].values, 1.0, {kept_[g], Write::set});
      kernels::accumulate(step, means_[g], 1.0, {groups[g].values, Write::set});
    }
  }
  swapped_ = !swapped_;
  store_->refresh_rounded(step);
}

void WeightAverage::visit_state(const StateFound& found) const {
  if (started()) visit_blocks(*store_, means_, "weight_mean", found);
}

void WeightAverage::restore(std::int64_t updates) {
  require_started("restore");
  if (updates < 0) throw UsageError(text("weight average: a number of updates must be at least 0, got ", updates));
  updates_ = updates;
}

void AveragingTrigger::add(double loss) {
  if (static_cast<std::int64_t>(losses_.size()) > recent_) {
    double best = std::numeric_limits<double>::infinity();
    for (auto older = losses_.begin(); older != losses_.end() - recent_; ++older) best = std::fmin(best, *older);
    reached_ = reached_ || !(loss < best);  // what is not a number is no improvement
  }
  losses_.push_back(loss);
}

void AveragingTrigger::restore(std::span<const double> losses) {
  std::vector<double> all(losses.begin(), losses.end());  // `losses` may be state() of this one
  reached_ = false;
  // What add() would find, one after the other, in time that grows with their number alone.
  double best = std::numeric_limits<double>::infinity();
  for (auto at = static_cast<std::size_t>(recent_) + 1; at < all.size(); ++at) {
    best = std::fmin(best, all[at - 1 - static_cast<std::size_t>(recent_)]);
    reached_ = reached_ || !(all[at] < best);
  }
  losses_ = std::move(all);
}

}  // namespace engram
