#pragma once
/// An update rule over all groups of a parameter store, and that of its tables, with state that checkpoints can name.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/names.hpp"
#include "nn/optim/table_optimizer.hpp"

namespace engram {

enum class OptimizerKind : std::uint8_t { adagrad, adam, sgd };
constexpr auto names_of(OptimizerKind) {
  return std::to_array<Named<OptimizerKind>>(
      {{OptimizerKind::adagrad, "adagrad"}, {OptimizerKind::adam, "adam"}, {OptimizerKind::sgd, "sgd"}});
}
/// How gradients are kept from growing.
enum class ClipKind : std::uint8_t {
  per_tensor_step,  ///< Adagrad: each tensor's step is shrunk, the accumulator sees the raw gradient (default there)
  per_tensor_gradient,  ///< each tensor's gradient is scaled first
  global  ///< all gradients together are scaled, by min(1, clip / (norm + 1e-6)): the default of Adam and SGD
};
constexpr auto names_of(ClipKind) {
  return std::to_array<Named<ClipKind>>(
      {{ClipKind::per_tensor_step, "step"}, {ClipKind::per_tensor_gradient, "gradient"}, {ClipKind::global, "global"}});
}

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adagrad;
  double clip = 0;  ///< largest norm; 0: no clipping
  ClipKind clip_kind = ClipKind::per_tensor_step;
  double beta1 = 0.9;     ///< Adam
  double beta2 = 0.999;   ///< Adam
  double epsilon = 1e-8;  ///< Adam; Adagrad always uses 1e-10
  /// Adam. By default what it is divided by is sqrt(v / (1 - b2^t)) + epsilon; `uncorrected`, as the released program
  /// on product-key memory has it: (sqrt(v) + epsilon) / sqrt(1 - b2^t).
  EpsilonAt epsilon_at = EpsilonAt::corrected;
  double momentum = 0;      ///< SGD
  double weight_decay = 0;  ///< Adam, decoupled; not of the group "undecayed"
  /// Learning rate of the group "spans" as a share of that of the others. Adam moves every parameter by about the full
  /// rate however small its gradient, which is a position or more per step of a long span.
  double span_rate_share = 1;
  TableOptimizerOptions tables;  ///< of tables with gradients of rows, which nothing of the above is about

  /// Throws UsageError naming the option and its value.
  void check() const;
};

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step);
  virtual ~Optimizer() = default;

  /// One update of all parameters from their gradients, at the learning rate of the step's scalars; then the spans are
  /// clamped to [0, 1] and bf16 copies, if the store keeps any, made anew. The step number of the scalars counts
  /// updates from 0.
  void update(Step& step);

  /// For tables in the mode deferred (TableOptimizer::bring_up_to_date): before their values or the state are read.
  void bring_up_to_date(Step& step);
  /// The rule of the tables; nullptr where the store has none.
  TableOptimizer* tables() { return tables_.get(); }
  const TableOptimizer* tables() const { return tables_.get(); }

  /// Every state tensor with its name, `<parameter>.<what>`, shaped like the parameter, but for those that tables have
  /// per row.
  using StateFound = TableOptimizer::StateFound;
  void visit_state(const StateFound& found) const;
  /// Norms of every parameter's gradient at the last update, in the order of the groups and their parameters.
  std::vector<double> gradient_norms(Backend& backend) const;

 protected:
  /// Zeroed memory in the shape of every group's block.
  struct State {
    std::string name;
    std::vector<Tensor> blocks;
  };
  State& add_state(Step& step, std::string name);
  virtual void update_group(Step& step, std::size_t group) = 0;
  /// The share of the learning rate that a group gets.
  double rate_share(const ParameterGroup& group) const { return group.name == kSpans ? span_rate_share_ : 1; }

  static constexpr std::string_view kSpans = "spans";
  static constexpr std::string_view kUndecayed = "undecayed";
  ParameterStore* store_;
  std::vector<std::unique_ptr<State>> states_;
  Tensor squared_norms_;             // [all segments] f64
  std::vector<Tensor> group_norms_;  // slices of it
  Tensor scale_;                     // [1] f64: the global clip factor
  double global_clip_ = 0;
  double span_rate_share_;
  std::unique_ptr<TableOptimizer> tables_;
};

}  // namespace engram
