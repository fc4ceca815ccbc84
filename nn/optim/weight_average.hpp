#pragma once
/// The mean of the weights after many updates, with which a model is evaluated: Polyak, Juditsky (1992), begun where
/// training has stopped to improve, as in AWD-LSTM (Merity, Keskar, Socher, 2018; [transformer-xl 4.6]).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

/// Keeps the running mean of all parameters of a store, in their dtype, and exchanges the parameters with it.
class WeightAverage {
 public:
  using StateFound = std::function<void(const std::string& name, const Tensor& tensor)>;

  /// Takes no memory yet. The store must be placed when start() is called, and outlive this.
  explicit WeightAverage(ParameterStore& store) : store_(&store) {}

  /// Takes memory, twice that of the values, and begins a mean of no updates. Again: begins anew, with the same memory.
  /// Throws Error while swapped, UsageError when the store has tables with gradients of rows.
  void start(Step& step);
  bool started() const { return !means_.empty(); }
  /// Adds the parameters to the mean: after an update. Throws Error before start() and while swapped.
  void add(Step& step);
  /// How many updates are in the mean.
  std::int64_t updates() const { return updates_; }

  /// The parameters become the mean, for an evaluation; the next call gives them back, bit for bit. bf16 copies of the
  /// store are made anew. Throws Error when there are no updates in the mean.
  void swap(Step& step);
  bool swapped() const { return swapped_; }

  /// Every state tensor by name, `<parameter>.weight_mean`, shaped like the parameter; none before start().
  void visit_state(const StateFound& found) const;
  /// For a resumed run, after start() and after the state tensors were filled: how many updates they are the mean of.
  /// Throws UsageError for a negative number, Error before start() and while swapped.
  void restore(std::int64_t updates);

 private:
  void require_started(const char* what) const;

  ParameterStore* store_;
  std::vector<Tensor> means_;  // one for every group
  std::vector<Tensor> kept_;   // the parameters' values while swapped
  std::int64_t updates_ = 0;
  bool swapped_ = false;
};

/// Says when to start a WeightAverage: as soon as a validation loss is not below the best of all validations older than
/// the `recent` before it. AWD-LSTM, algorithm 1, where the loss must be above that best; here an equal one is no
/// improvement either.
class AveragingTrigger {
 public:
  /// Throws UsageError for a negative `recent`.
  explicit AveragingTrigger(std::int64_t recent = 5) : recent_(recent) {
    if (recent < 0) throw UsageError(text("averaging: recent must be at least 0 validations, got ", recent));
  }

  /// Takes the loss of a validation.
  void add(double loss);
  /// Stays true.
  bool reached() const { return reached_; }

  /// All losses so far.
  const std::vector<double>& state() const { return losses_; }
  /// Begins anew with these losses.
  void restore(std::span<const double> losses);

 private:
  std::int64_t recent_;
  std::vector<double> losses_;
  bool reached_ = false;
};

}  // namespace engram
