#pragma once
/// An update rule over all groups of a parameter store, and that of its tables, with state that checkpoints can name.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/communicator.hpp"
#include "core/division.hpp"
#include "core/exchange_costs.hpp"
#include "core/names.hpp"
#include "nn/optim/shards.hpp"
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
  global                ///< all gradients together are scaled, by min(1, clip / (norm + 1e-6)): Adam and SGD
};
constexpr auto names_of(ClipKind) {
  return std::to_array<Named<ClipKind>>(
      {{ClipKind::per_tensor_step, "step"}, {ClipKind::per_tensor_gradient, "gradient"}, {ClipKind::global, "global"}});
}

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adagrad;
  double clip = 0;                                 ///< largest norm; 0: no clipping
  ClipKind clip_kind = ClipKind::per_tensor_step;  ///< Adam and SGD take `global` alone, which is to be set for them
  double beta1 = 0.9;                              ///< Adam
  double beta2 = 0.999;                            ///< Adam
  double epsilon = 1e-8;                           ///< Adam; Adagrad always uses 1e-10
  /// Adam. By default what it is divided by is sqrt(v / (1 - b2^t)) + epsilon; `uncorrected`, as the released program
  /// on product-key memory has it: (sqrt(v) + epsilon) / sqrt(1 - b2^t).
  EpsilonAt epsilon_at = EpsilonAt::corrected;
  double momentum = 0;      ///< SGD
  bool nesterov = false;    ///< SGD: the step is gradient + momentum velocity, of the velocity that has the gradient
  double weight_decay = 0;  ///< Adam, decoupled; not of the group "undecayed"
  /// Learning rate of the group "spans" as a share of that of the others. Adam moves every parameter by about the full
  /// rate however small its gradient, which is a position or more per step of a long span.
  double span_rate_share = 1;
  TableOptimizerOptions tables = {};  ///< of tables with gradients of rows, which nothing of the above is about

  /// Throws UsageError naming the option and its value.
  void check() const;
};

/// The ranks that an optimiser updates with.
struct UpdateRanks {
  Communicator* ranks = nullptr;             ///< must outlive it; nullptr: there is one
  std::int64_t bucket_bytes = kBucketBytes;  ///< as make_buckets has it
};

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with = {});
  virtual ~Optimizer() = default;

  /// What of the store's blocks each rank updates, from its gradients there.
  const std::vector<Bucket>& buckets() const { return buckets_; }

  /// One update of all parameters from their gradients, at the learning rate of the step's scalars; then the spans are
  /// clamped to [0, 1] and bf16 copies, if the store keeps any, made anew. Gradients of tables' rows, which are memory
  /// of the step, are let go; dense ones stay until ParameterStore::zero_gradients().
  ///
  /// The step number of the scalars counts updates, from 0: Adam's moments and the random numbers of a step depend on
  /// it. Throws Error, and changes nothing, for a step that was not begun, whose rate would be 0. A number that the
  /// last update had is a warning, once: who goes back to a checkpoint may have it again.
  void update(Step& step);

  /// For tables in the mode deferred (TableOptimizer::bring_up_to_date): before their values or the state are read.
  void bring_up_to_date(Step& step);
  /// The rule of the tables; nullptr where the store has none.
  TableOptimizer* tables() { return tables_.get(); }
  const TableOptimizer* tables() const { return tables_.get(); }

  /// Every state tensor with its name, `<parameter>.<what>`, shaped like the parameter, but for those that tables have
  /// per row.
  /// Where ranks share the work, what is divided over them comes with its division, as the flat tensor of what this
  /// rank holds: none if it holds nothing.
  using DividedStateFound =
      std::function<void(const std::string& name, const Tensor& held, const std::optional<Division>& division)>;
  void visit_state(const DividedStateFound& found) const;
  /// For reports: the dense gradients of the last update are whole on every rank, not in its own parts alone.
  void gather_gradients(Step& step) { gather(step, Gathered::gradients); }
  /// Of updates, which wait for all that they gather (values, gradients of rows, sums of squares), and of reports.
  const ExchangeCosts& gather_costs() const { return gather_costs_; }
  /// Norms of every parameter's gradient at the last update, in the order of the groups and their parameters.
  std::vector<double> gradient_norms(Backend& backend) const;

 protected:
  /// What this rank updates of a bucket.
  struct Part {
    std::size_t group = 0;
    Tensor values, gradients;  ///< [n]
    SegmentTable segments;     ///< in them
    Tensor squared_norms;      ///< [segments] f64, of the whole segments
    Tensor squares;            ///< [chunks] f64
    std::int64_t place = 0;    ///< in the rank's block of state
  };
  /// Zeroed memory for the parts of a group, one after the other.
  struct State {
    std::string name;
    std::vector<Tensor> blocks;  ///< one for each group
    std::vector<Tensor> parts;   ///< slices of them
  };
  State& add_state(Step& step, std::string name);
  virtual void update_part(Step& step, std::size_t part) = 0;
  const ParameterGroup& group_of(const Part& part) const { return store_->groups()[part.group]; }
  /// The share of the learning rate that a part gets.
  double rate_share(const Part& part) const { return group_of(part).name == kSpans ? span_rate_share_ : 1; }

  static constexpr std::string_view kSpans = "spans";
  static constexpr std::string_view kUndecayed = "undecayed";
  ParameterStore* store_;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<State>> states_;
  Tensor scale_;  // [1] f64: the global clip factor
  double global_clip_ = 0;
  double span_rate_share_;

 private:
  void make_parts(Step& step);
  void check_begun(const Step& step);
  void sum_norms(Step& step);
  enum class Gathered : std::uint8_t { values, gradients, squares };
  /// Every rank's parts become what that rank has.
  void gather(Step& step, Gathered what);
  void visit_divided(const State& state, const DividedStateFound& found) const;

  OneRank one_;
  Communicator* ranks_;
  std::vector<Bucket> buckets_;
  Tensor squared_norms_;             // [all segments] f64
  std::vector<Tensor> group_norms_;  // slices of it
  std::vector<Tensor> squares_;      // of every group: [chunks] f64
  std::unique_ptr<TableOptimizer> tables_;
  ExchangeCosts gather_costs_;
  std::optional<std::uint64_t> last_update_;  // its number
  bool warned_ = false;                       // of a number that came again
};

}  // namespace engram
