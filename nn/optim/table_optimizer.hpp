#pragma once
/// Update rules of tables with gradients of rows: a group of their own beside everything else, with their own rate and
/// clip. [product-key 2.4]; the kernels are in core/kernels/row_optimizer.hpp. Where ranks share the columns of tables,
/// each updates its own, and what belongs to a row all have alike ([product-key 7.5]).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/division.hpp"
#include "core/kernels/row_optimizer.hpp"
#include "core/names.hpp"

namespace engram {

enum class TableKind : std::uint8_t {
  adam,        ///< two moments as large as the table
  row_adagrad  ///< one number per row
};
constexpr auto names_of(TableKind) {
  return std::to_array<Named<TableKind>>({{TableKind::adam, "adam"}, {TableKind::row_adagrad, "row_adagrad"}});
}

struct TableOptimizerOptions {
  TableKind kind = TableKind::adam;
  /// Adam: which rows a step moves. A rate that was found in one mode is wrong by up to ten times in another.
  TableMode mode = TableMode::lazy;
  double rate = 1e-3;             ///< of every step, unless it follows the schedule
  bool follows_schedule = false;  ///< the rate is multiplied by the share of schedule_rate that a step has
  double schedule_rate = 1;       ///< highest learning rate of the schedule, which knows it
  double beta1 = 0.9;             ///< Adam
  double beta2 = 0.999;           ///< Adam
  double epsilon = 1e-8;          ///< added to the root of the second moment, or of the row's sum
  /// Adam, as OptimizerOptions has it for all other parameters, but with the other default. In the mode deferred, which
  /// leaves epsilon out while a row catches up, either; at epsilon 0 they are the same.
  EpsilonAt epsilon_at = EpsilonAt::uncorrected;
  double weight_decay = 0;  ///< decoupled; of the rows that a step moves
  /// Largest norm of the gradients of all tables together, 0: no clipping. What all other gradients are is no part of
  /// it, and the other way round.
  double clip = 0;
  bool last_use = false;  ///< the step that used a row last is kept, for reports: nothing of the update depends on it

  /// Throws UsageError naming the option and its value.
  void check() const;
};

class TableOptimizer final : public RowRefresh {
 public:
  using StateFound =
      std::function<void(const std::string& name, const Tensor& tensor, const std::optional<Division>& division)>;

  /// State starts at zero: of tables of f32 and bf16 it is f32. The store must be placed, have tables that are not
  /// frozen, which are those that it updates, and outlive it.
  /// Throws UsageError when the options are not valid.
  TableOptimizer(const TableOptimizerOptions& options, ParameterStore& store, Step& step);
  TableOptimizer(const TableOptimizer&) = delete;
  TableOptimizer& operator=(const TableOptimizer&) = delete;
  ~TableOptimizer() override;

  /// One update of all tables from their gradients of rows, which stay: Optimizer::update lets them go. Ranks that
  /// share tables call it together. The step number of the scalars counts updates from 0. A table that nobody read:
  /// dense, its moments fade and move it; else nothing changes.
  void update(Step& step);

  /// Deferred: all rows become what they are in the dense mode after the last update. Due before anyone reads whole
  /// tables: evaluation, checkpoints. In other modes they are that already, and nothing happens.
  void bring_up_to_date(Step& step);
  /// Deferred: brings rows of one table up to date that a step of training is about to read: Parameter::refresh_rows.
  void refresh(Step& step, const Parameter& table, const Tensor& ids) override;

  /// Every state tensor with its name. Adam: `<parameter>.first_moment` and `.second_moment`, shaped like the table;
  /// row_step: `.steps`, deferred: `.last_step`, [rows] i32. Row-wise AdaGrad: `.row_sum`, [rows]. With
  /// last_use: `.last_use`, [rows] i32, steps counted from 1, 0: none. Deferred state is complete after
  /// bring_up_to_date() only. Moments of shared columns come with their division, as Parameter::value() does.
  void visit_state(const StateFound& found) const;
  /// Deferred: what a run needs to go on bit for bit from a step at which no row was to be brought up to date. Of every
  /// table `<parameter>.values`, its moments and `.last_step`, and `table_clock`, all as they are. In other modes none.
  void visit_late_rows(const StateFound& found) const;

 private:
  struct Table {
    Parameter* parameter;
    AdamTable adam;        // of the parameter's values, or
    AdagradTable adagrad;  // the other one is empty
    Tensor last_use;       // [rows] i32, or none
    RandomStream random;
  };
  bool deferred() const { return options_.kind == TableKind::adam && options_.mode == TableMode::deferred; }
  void scale_to_clip(Step& step, std::span<const RowGradients> gradients);
  void update_table(Step& step, const RowGradients& gradients, Table& table);

  TableOptimizerOptions options_;
  ParameterStore* store_;
  kernels::RowAdamOptions adam_;
  kernels::RowAdagradOptions adagrad_;
  std::vector<Table> tables_;
  Tensor squared_norms_;       // [tables] f64
  std::vector<Tensor> norms_;  // each of them
  Tensor scale_, one_;         // [1] f64: the clip factor, and 1
  Tensor clock_;               // deferred: TableClock
};

}  // namespace engram
