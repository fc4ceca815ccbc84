#include "nn/optim/table_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <memory_resource>

#include "autograd/rank_exchange.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/kernels/row_order.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {
namespace {

/// Operations of a tape count from 0 in every step: these never meet them.
constexpr std::uint32_t kTableOperation = 0x80000000u;

Tensor cleared(Step& step, const ParameterStore& store, Shape shape, DType dtype) {
  Tensor made(shape, dtype, step.device(), store.allocator());
  kernels::fill(step, made, 0);
  return made;
}

RowGradients gradients_of(Step& step, const Parameter& table) {
  const RowGradient& gradient = table.row_gradient();
  const bool any = std::ranges::any_of(gradient.parts, [](const auto& part) { return part.uses.count() > 0; });
  if (!any) return {};
  RowGradient::Part part = joined(step, gradient, table.shape()[0]);
  return {.uses = std::move(part.uses), .order = std::move(part.order), .sums = {}};
}

/// Sums that are kept are written once and read once or, with a clip, twice, up to P rows of a memory that holds
/// nothing else; summed on the way, the sources of a step, R rows for P = R A uses, mostly stay in a cache. That turns
/// where the table is small and its rows are used often: rows with many uses are cut over threads where sums are kept,
/// and with a clip a second summation would read many more rows than there are sums. On two cores, without a clip,
/// updates with sums on the way took half as long at 8 uses a row, 0.6 times at 32, and as long at 128.
void sum_if_shorter(Step& step, bool read_twice, RowGradients& gradients) {
  const std::int64_t often = read_twice ? 4 : 32;
  if (!gradients.order || gradients.uses.count() <= often * gradients.order.rows.count()) return;
  gradients.sums = step.empty({gradients.order.rows.count(), gradients.uses.width()}, gradients.uses.weights.dtype());
  kernels::sum_row_uses(step, gradients.uses, gradients.order, gradients.sums);
}

/// The squares of whole rows' gradients, times `scale`, from those of the columns that each rank has.
Tensor whole_squares(Step& step, const RowGradients& gradients, const Tensor& scale, const Parameter& table) {
  Tensor squares = step.empty({gradients.order.rows.count()}, DType::f64);
  kernels::row_squares(step, gradients, scale, table.columns(), squares);
  if (table.shared_by() != nullptr) gather_sum(step, squares, *table.shared_by());
  return squares;
}

/// How what a table has for each element is divided.
std::optional<Division> divided(const Parameter& table, const Tensor& state) {
  std::optional<Division> division = table.division();
  if (division) division->dtype = state.dtype();
  return division;
}

}  // namespace

void TableOptimizerOptions::check() const {
  using option_limits::kLargest;
  constexpr OptionRules rules("optimizer: table_");
  rules.within("rate", rate, 0, kLargest);
  rules.require(beta1 >= 0 && beta1 < 1, "beta1", "in [0, 1)", beta1);
  rules.require(beta2 >= 0 && beta2 < 1, "beta2", "in [0, 1)", beta2);
  rules.within("epsilon", epsilon, 0, kLargest);
  rules.within("weight_decay", weight_decay, 0, kLargest);
  rules.within("clip", clip, 0, kLargest, ", 0 for no clipping");
  if (follows_schedule && !(schedule_rate > 0))
    throw UsageError(
        text("optimizer: table_follows_schedule needs a schedule with a rate above 0, got ", schedule_rate));
  if (kind == TableKind::row_adagrad && mode != TableMode::lazy)
    throw UsageError(
        "optimizer: table_mode must be lazy with table_kind row_adagrad\n  its rows without a gradient do not move in "
        "any mode");
  if (kind != TableKind::adam || mode != TableMode::deferred) return;
  rules.require(epsilon <= 1e-12, "epsilon", "at most 1e-12 in the mode deferred", epsilon,
                "\n  a row that catches up with many steps at once leaves epsilon out; table_epsilon = 0 is exact");
  const double ratio = beta2 > 0 ? beta1 / std::sqrt(beta2) : 1;
  rules.require(ratio <= TableClock::kLargestRatio, "beta1", "at most 0.99 sqrt(table_beta2) in the mode deferred",
                beta1, "\n  else the effect of a gradient fades so slowly that catching up costs thousands of terms");
  rules.require(rate * weight_decay < 1, "weight_decay", "below 1 / table_rate in the mode deferred", weight_decay);
}

TableOptimizer::TableOptimizer(const TableOptimizerOptions& options, ParameterStore& store, Step& step)
    : options_(options), store_(&store) {
  options_.check();
  const TableRate rate =
      options_.follows_schedule ? TableRate{0, options_.rate / options_.schedule_rate} : TableRate{options_.rate, 0};
  adam_ = {.mode = options_.mode,
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .epsilon = options_.epsilon,
           .epsilon_at = options_.epsilon_at,
           .weight_decay = options_.weight_decay,
           .rate = rate};
  adagrad_ = {.epsilon = options_.epsilon, .weight_decay = options_.weight_decay, .rate = rate};
  const std::uint64_t seed = step.next_random().seed;
  for (Parameter* const parameter : store.tables()) {
    if (parameter->frozen()) continue;
    const Tensor& values = parameter->value();
    const DType dtype = compute_dtype(values.dtype());
    const Shape rows{values.shape()[0]};
    Table table{.parameter = parameter,
                .adam = {},
                .adagrad = {},
                .last_use = options_.last_use ? cleared(step, store, rows, DType::i32) : Tensor{},
                .random = {seed, kTableOperation | static_cast<std::uint32_t>(tables_.size()), nullptr}};
    if (options_.kind == TableKind::row_adagrad) {
      table.adagrad = {values, cleared(step, store, rows, dtype), parameter->columns()};
    } else {
      table.adam = {.values = values,
                    .first_moment = cleared(step, store, values.shape(), dtype),
                    .second_moment = cleared(step, store, values.shape(), dtype),
                    .steps = {},
                    .columns = parameter->columns()};
      if (options_.mode == TableMode::row_step || options_.mode == TableMode::deferred)
        table.adam.steps = cleared(step, store, rows, DType::i32);
    }
    tables_.push_back(std::move(table));
  }
  const auto count = static_cast<std::int64_t>(tables_.size());
  squared_norms_ = cleared(step, store, {count}, DType::f64);
  for (std::int64_t i = 0; i < count; ++i) norms_.push_back(squared_norms_.rows(i, i + 1));
  scale_ = cleared(step, store, {1}, DType::f64);
  one_ = cleared(step, store, {1}, DType::f64);
  for (Tensor* const factor : {&scale_, &one_}) kernels::fill(step, *factor, 1);
  if (!deferred()) return;
  clock_ = cleared(step, store, {TableClock::of(options_.beta1, options_.beta2).count()}, DType::f64);
  for (const Table& table : tables_) table.parameter->set_row_refresh(this);  // nothing throws from here on
}

TableOptimizer::~TableOptimizer() {
  for (Parameter* const table : store_->tables())
    if (table->row_refresh() == this) table->set_row_refresh(nullptr);
}

void TableOptimizer::update(Step& step) {
  std::pmr::vector<RowGradients> gradients(step.objects());
  gradients.reserve(tables_.size());
  for (const Table& table : tables_) gradients.push_back(gradients_of(step, *table.parameter));
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const bool squares = options_.kind == TableKind::row_adagrad && tables_[i].parameter->shared_by() != nullptr;
    sum_if_shorter(step, options_.clip > 0 || squares, gradients[i]);
  }
  if (options_.clip > 0) scale_to_clip(step, gradients);
  for (std::size_t i = 0; i < tables_.size(); ++i) update_table(step, gradients[i], tables_[i]);
  if (deferred()) kernels::advance_table_clock(step, adam_, clock_);
}

void TableOptimizer::scale_to_clip(Step& step, std::span<const RowGradients> gradients) {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    Tensor squares;
    if (gradients[i].order) squares = whole_squares(step, gradients[i], one_, *tables_[i].parameter);
    kernels::row_squared_norm(step, squares, norms_[i]);
  }
  kernels::clip_scale(step, squared_norms_, options_.clip, scale_);
}

void TableOptimizer::update_table(Step& step, const RowGradients& gradients, Table& table) {
  RandomStream random = table.random;
  random.scalars = step.scalars();
  if (table.last_use && gradients.order) kernels::stamp_rows(step, gradients.order, table.last_use);
  const bool untouched = options_.kind == TableKind::row_adagrad || options_.mode == TableMode::lazy ||
                         options_.mode == TableMode::row_step;
  if (!gradients.order && untouched) return;
  if (options_.kind == TableKind::row_adagrad) {
    Tensor squares;
    if (table.parameter->shared_by() != nullptr) squares = whole_squares(step, gradients, scale_, *table.parameter);
    kernels::adagrad_rows(step, gradients, squares, scale_, adagrad_, random, table.adagrad);
  } else {
    kernels::adam_rows(step, gradients, scale_, clock_, adam_, random, table.adam);
  }
}

void TableOptimizer::bring_up_to_date(Step& step) {
  if (!deferred()) return;
  for (Table& table : tables_) {
    RandomStream random = table.random;
    random.scalars = step.scalars();
    kernels::bring_rows_up_to_date(step, {}, clock_, adam_, random, table.adam);
  }
  // No row needs the past any more. The clock begins anew, as it does in a run that goes on from a checkpoint: sums
  // over different pasts could differ in their last bits.
  Tensor now = clock_.rows(TableClock::kNow, TableClock::kNow + 1);
  kernels::fill(step, now, 0);
}

void TableOptimizer::refresh(Step& step, const Parameter& parameter, const Tensor& ids) {
  if (!deferred() || ids.count() == 0) return;
  const auto table = std::ranges::find(tables_, &parameter, &Table::parameter);
  if (table == tables_.end())
    throw Error(text("table optimizer: rows are brought up to date in a table of the store, got ", parameter.name()));
  RandomStream random = table->random;
  // Rows may be read by any piece.
  random.scalars = step.first_scalars();
  kernels::bring_rows_up_to_date(step, ids, clock_, adam_, random, table->adam);
}

void TableOptimizer::visit_state(const StateFound& found) const {
  for (const Table& table : tables_) {
    const std::string& name = table.parameter->name();
    if (table.last_use) found(name + ".last_use", table.last_use, std::nullopt);
    if (options_.kind == TableKind::row_adagrad) {
      found(name + ".row_sum", table.adagrad.row_sum, std::nullopt);
      continue;
    }
    const std::optional<Division> division = divided(*table.parameter, table.adam.first_moment);
    found(name + ".first_moment", table.adam.first_moment, division);
    found(name + ".second_moment", table.adam.second_moment, division);
    if (options_.mode == TableMode::row_step) found(name + ".steps", table.adam.steps, std::nullopt);
    if (options_.mode == TableMode::deferred) found(name + ".last_step", table.adam.steps, std::nullopt);
  }
}

void TableOptimizer::visit_late_rows(const StateFound& found) const {
  if (!deferred()) return;
  for (const Table& table : tables_)
    found(table.parameter->name() + ".values", table.adam.values, table.parameter->division());
  visit_state(found);
  found("table_clock", clock_, std::nullopt);
}

}  // namespace engram
