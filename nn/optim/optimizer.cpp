#include "nn/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/log.hpp"
#include "core/stopwatch.hpp"
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
  if (nesterov && kind == OptimizerKind::sgd && momentum == 0)
    throw UsageError("optimizer: nesterov needs momentum above 0, got momentum 0; set optimizer.momentum");
  rules.within("weight_decay", weight_decay, 0, kLargest);
  rules.within("span_rate_share", span_rate_share, 0, kLargest);
  if (kind == OptimizerKind::adagrad && clip_kind == ClipKind::global)
    throw UsageError("optimizer: adagrad clips per tensor; clip_kind must be step or gradient, got global");
  if (kind != OptimizerKind::adagrad && clip_kind != ClipKind::global)
    throw UsageError(text("optimizer: clip_kind must be global for ", name_of(kind),
                          ", which clips the norm of all gradients or nothing, got ", name_of(clip_kind)));
  tables.check();
}

Optimizer::Optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with)
    : store_(&store),
      span_rate_share_(options.span_rate_share),
      ranks_(with.ranks != nullptr ? with.ranks : &one_),
      buckets_(make_buckets(store, ranks_->size(), with.bucket_bytes)) {
  if (!std::ranges::all_of(store.tables(), &Parameter::frozen))
    tables_ = std::make_unique<TableOptimizer>(options.tables, store, step);
  if (!store.groups().empty()) make_parts(step);
}

void Optimizer::make_parts(Step& step) {
  std::int64_t segments = 0;
  for (const ParameterGroup& group : store_->groups()) segments += static_cast<std::int64_t>(group.segments.size());
  squared_norms_ = Tensor({segments}, DType::f64, step.device(), store_->allocator());
  scale_ = Tensor({1}, DType::f64, step.device(), store_->allocator());
  std::int64_t first = 0;
  for (const ParameterGroup& group : store_->groups()) {
    const auto count = static_cast<std::int64_t>(group.segments.size());
    group_norms_.push_back(squared_norms_.rows(first, first + count));
    squares_.emplace_back(Shape{chunks_of(group.segments)}, DType::f64, step.device(), store_->allocator());
    first += count;
  }
  std::vector<std::int64_t> places(store_->groups().size());
  const int rank = ranks_->rank();
  for (const Bucket& bucket : buckets_) {
    const std::int64_t begin = bucket.begin_of(rank), end = bucket.end_of(rank);
    if (begin == end) continue;
    const ParameterGroup& group = store_->groups()[bucket.group];
    SegmentRange range = segments_in(group.segments, begin, end);
    const auto from = static_cast<std::int64_t>(range.first);
    const auto to = from + static_cast<std::int64_t>(range.segments.size());
    parts_.push_back({.group = bucket.group,
                      .values = group.values.rows(begin, end),
                      .gradients = group.gradients.rows(begin, end),
                      .segments = std::move(range.segments),
                      .squared_norms = group_norms_[bucket.group].rows(from, to),
                      .squares = squares_[bucket.group].rows(bucket.first_chunk_of(rank), bucket.chunk_end_of(rank)),
                      .place = places[bucket.group]});
    places[bucket.group] += end - begin;
  }
}

Optimizer::State& Optimizer::add_state(Step& step, std::string name) {
  State& state = *states_.emplace_back(std::make_unique<State>(State{std::move(name), {}, {}}));
  for (std::size_t g = 0; g < store_->groups().size(); ++g) {
    std::int64_t count = 0;
    for (const Part& part : parts_) count += part.group == g ? part.values.count() : 0;
    const Tensor& values = store_->groups()[g].values;
    Tensor& block = state.blocks.emplace_back(Shape{count}, values.dtype(), values.device(), store_->allocator());
    if (count > 0) kernels::fill(step, block, 0.0);
  }
  for (const Part& part : parts_)
    state.parts.push_back(state.blocks[part.group].rows(part.place, part.place + part.values.count()));
  return state;
}

void Optimizer::check_begun(const Step& step) {
  const StepScalars* const scalars = step.begun();
  if (scalars == nullptr)
    throw Error(
        "optimizer: every update must be part of a step that was begun, got one without a learning rate\n"
        "  call step.begin({.step = NUMBER, .learning_rate = RATE}) before it, first of all that is of the step");
  if (last_update_ != scalars->step || warned_) return;
  warned_ = true;
  log(LogLevel::warning, text("optimizer: every update should have a number of its own, got ", scalars->step,
                              " twice\n  step.begin({.step = NUMBER, .learning_rate = RATE}) begins each, from 0 on"));
}

void Optimizer::update(Step& step) {
  check_begun(step);
  // First, because it may find too little memory for its gradients: then nothing has been updated yet.
  if (tables_) tables_->update(step);
  if (!store_->groups().empty()) sum_norms(step);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    update_part(step, i);
    if (group_of(parts_[i]).name == kSpans) kernels::clamp(step, parts_[i].values, 0.0, 1.0);
  }
  gather(step, Gathered::values);
  store_->refresh_rounded(step);
  // They were used up, and nothing of a step may be left at its end.
  store_->clear_row_gradients();
  // A step that is captured is not run, and its number is that of each replay.
  if (!step.backend().capturing()) last_update_ = step.begun()->step;
}

void Optimizer::sum_norms(Step& step) {
  for (Part& part : parts_) kernels::segment_chunk_squares(step, part.gradients, part.segments, part.squares);
  gather(step, Gathered::squares);
  for (std::size_t g = 0; g < store_->groups().size(); ++g)
    kernels::add_segment_chunks(step, squares_[g], store_->groups()[g].segments, group_norms_[g]);
  kernels::clip_scale(step, squared_norms_, global_clip_, scale_);
}

void Optimizer::gather(Step& step, Gathered what) {
  if (ranks_->alone()) return;
  std::vector<PartedBuffer> buffers;
  for (const Bucket& bucket : buckets_) {
    const ParameterGroup& group = store_->groups()[bucket.group];
    const bool squares = what == Gathered::squares;
    const Tensor& block = squares ? squares_[bucket.group] : what == Gathered::values ? group.values : group.gradients;
    const std::int64_t begin = squares ? bucket.first_chunk : bucket.begin;
    const std::size_t bytes = size_of(block.dtype());
    std::vector<std::size_t> ends;
    for (const std::int64_t end : squares ? bucket.chunk_ends : bucket.ends)
      ends.push_back(static_cast<std::size_t>(end - begin) * bytes);
    if (ends.back() == 0) continue;
    auto* const all = static_cast<std::byte*>(block.raw()) + static_cast<std::size_t>(begin) * bytes;
    buffers.push_back({all, std::move(ends)});
  }
  gather_in_step(*ranks_, step.backend(), std::move(buffers), &gather_costs_);
}

void Optimizer::bring_up_to_date(Step& step) {
  if (tables_) tables_->bring_up_to_date(step);
}

void Optimizer::visit_state(const DividedStateFound& found) const {
  const auto whole = [&found](const std::string& name, const Tensor& tensor) { found(name, tensor, std::nullopt); };
  for (const auto& state : states_) {
    if (ranks_->alone())
      visit_blocks(*store_, state->blocks, state->name, whole);
    else
      visit_divided(*state, found);
  }
  if (tables_) tables_->visit_state(found);
}

void Optimizer::visit_divided(const State& state, const DividedStateFound& found) const {
  std::vector<std::int64_t> places(state.blocks.size());  // of the bucket, in the rank's block
  for (const Bucket& bucket : buckets_) {
    const ParameterGroup& group = store_->groups()[bucket.group];
    const std::int64_t begin = bucket.begin_of(ranks_->rank()), end = bucket.end_of(ranks_->rank());
    for (std::size_t i = 0; i < group.segments.size(); ++i) {
      const auto [offset, count] = group.segments[i];
      if (offset < bucket.begin || offset >= bucket.end) continue;
      const Parameter& parameter = *group.parameters[i];
      Division division{.shape = parameter.shape(), .dtype = group.values.dtype(), .ends = {}};
      for (const std::int64_t rank_end : bucket.ends)
        division.ends.push_back(std::clamp<std::int64_t>(rank_end - offset, 0, count));
      const std::int64_t from = std::max(begin, offset), to = std::min(end, offset + count);
      const std::int64_t place = places[bucket.group] - begin;
      found(parameter.name() + "." + state.name,
            from < to ? state.blocks[bucket.group].rows(place + from, place + to) : Tensor(), division);
    }
    places[bucket.group] += end - begin;
  }
}

std::vector<double> Optimizer::gradient_norms(Backend& backend) const {
  std::vector<double> norms = host_copy<double>(backend, squared_norms_);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace engram
