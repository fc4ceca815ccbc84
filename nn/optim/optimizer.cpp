#include "nn/optim/optimizer.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/optimizer.hpp"
#include "nn/optim/parameter_blocks.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {

void OptimizerOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("optimizer: ");
  rules.within("clip", clip, 0, kLargest, ", 0 for no clipping");
  rules.require(beta1 >= 0 && beta1 < 1, "beta1", "in [0, 1)", beta1);
  rules.require(beta2 >= 0 && beta2 < 1, "beta2", "in [0, 1)", beta2);
  rules.within("epsilon", epsilon, kSmallest, kLargest, ", which f32 holds");
  rules.require(momentum >= 0 && momentum < 1, "momentum", "in [0, 1)", momentum);
  rules.within("weight_decay", weight_decay, 0, kLargest);
  rules.within("span_rate_share", span_rate_share, 0, kLargest);
  if (kind == OptimizerKind::adagrad && clip_kind == ClipKind::global)
    throw UsageError("optimizer: adagrad clips per tensor; clip_kind must be step or gradient, got global");
  if (kind != OptimizerKind::adagrad && clip_kind != ClipKind::global)
    throw UsageError("optimizer: adam and sgd clip the global norm; clip_kind must be global");
  tables.check();
}

Optimizer::Optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step)
    : store_(&store), span_rate_share_(options.span_rate_share) {
  if (!store.tables().empty()) tables_ = std::make_unique<TableOptimizer>(options.tables, store, step);
  if (store.groups().empty()) return;
  std::int64_t segments = 0;
  for (const ParameterGroup& group : store.groups()) segments += static_cast<std::int64_t>(group.segments.size());
  squared_norms_ = Tensor({segments}, DType::f64, step.device(), store.allocator());
  scale_ = Tensor({1}, DType::f64, step.device(), store.allocator());
  std::int64_t first = 0;
  for (const ParameterGroup& group : store.groups()) {
    const auto count = static_cast<std::int64_t>(group.segments.size());
    group_norms_.push_back(squared_norms_.rows(first, first + count));
    first += count;
  }
}

Optimizer::State& Optimizer::add_state(Step& step, std::string name) {
  states_.push_back(std::make_unique<State>(State{std::move(name), {}}));
  for (const ParameterGroup& group : store_->groups()) {
    states_.back()->blocks.emplace_back(group.values.shape(), group.values.dtype(), group.values.device(),
                                        store_->allocator());
    kernels::fill(step, states_.back()->blocks.back(), 0.0);
  }
  return *states_.back();
}

void Optimizer::update(Step& step) {
  // First, because it may find too little memory for its gradients: then nothing has been updated yet.
  if (tables_) tables_->update(step);
  auto& groups = store_->groups();
  for (std::size_t group = 0; group < groups.size(); ++group)
    kernels::segment_squared_norms(step, groups[group].gradients, groups[group].segments, group_norms_[group]);
  if (!groups.empty()) kernels::clip_scale(step, squared_norms_, global_clip_, scale_);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    update_group(step, group);
    if (groups[group].name == kSpans) kernels::clamp(step, groups[group].values, 0.0, 1.0);
  }
  store_->refresh_rounded(step);
}

void Optimizer::bring_up_to_date(Step& step) {
  if (tables_) tables_->bring_up_to_date(step);
}

void Optimizer::visit_state(const StateFound& found) const {
  for (const auto& state : states_) visit_blocks(*store_, state->blocks, state->name, found);
  if (tables_) tables_->visit_state(found);
}

std::vector<double> Optimizer::gradient_norms(Backend& backend) const {
  std::vector<double> norms = host_copy<double>(backend, squared_norms_);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace engram
