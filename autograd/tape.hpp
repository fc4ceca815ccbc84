#pragma once
/// The tape: a vector of operations in the order in which they ran, run backwards once. Each operation is freed as
/// soon as it ran, so its memory serves the gradients that come after it.

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/backward.hpp"
#include "autograd/node.hpp"
#include "autograd/parameter.hpp"
#include "autograd/variable.hpp"

namespace engram {

class Tape {
 public:
  enum class Mode {
    training,  ///< records, dropout is active
    inference  ///< records nothing, dropout is the identity
  };

  explicit Tape(Step& step, Mode mode = Mode::training) : step_(&step), mode_(mode) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Step& step() const { return *step_; }
  bool training() const { return mode_ == Mode::training; }

  /// A value that needs no gradient.
  Variable constant(Tensor value) { return Variable(std::move(value), this, -1); }
  /// A trained value; its gradient is added to the parameter's own memory.
  Variable parameter(Parameter& parameter);
  /// A value whose gradient is kept on the tape, for checks and teaching: see gradient().
  Variable leaf(Tensor value);

  /// Appends an operation with one output. When no input needs a gradient, or in inference mode, nothing is recorded
  /// and the node is dropped.
  template <std::derived_from<Node> N>
  Variable record(N node, std::initializer_list<Variable> inputs, Tensor output) {
    return std::move(record_outputs(std::move(node), inputs, std::array{std::move(output)})[0]);
  }
  template <std::derived_from<Node> N>
  Variable record(N node, std::span<const Variable> inputs, Tensor output) {
    return std::move(record_outputs(std::move(node), inputs, std::array{std::move(output)})[0]);
  }
  /// The same with several outputs.
  template <std::derived_from<Node> N, std::size_t kOutputs>
  std::array<Variable, kOutputs> record_outputs(N node, std::span<const Variable> inputs,
                                                std::array<Tensor, kOutputs> outputs) {
    int first = -1;
    if (must_record(inputs)) first = append(std::make_unique<N>(std::move(node)), inputs, outputs);
    std::array<Variable, kOutputs> variables;
    for (std::size_t i = 0; i < kOutputs; ++i)
      variables[i] = Variable(std::move(outputs[i]), this, first < 0 ? -1 : first + static_cast<int>(i));
    return variables;
  }
  template <std::derived_from<Node> N, std::size_t kOutputs>
  std::array<Variable, kOutputs> record_outputs(N node, std::initializer_list<Variable> inputs,
                                                std::array<Tensor, kOutputs> outputs) {
    return record_outputs(std::move(node), std::span<const Variable>(inputs.begin(), inputs.size()),
                          std::move(outputs));
  }

  /// Gradients of the sum of scalar losses ([1] or rank 0), each seeded with 1. The tape is empty afterwards.
  void backward(std::initializer_list<Variable> scalar_losses);
  /// Gradient of sum(cotangent * output). `cotangent` has the output's shape.
  void backward(const Variable& output, const Tensor& cotangent);
  /// After backward: the gradient of a leaf. Throws Error when none reached it.
  const Tensor& gradient(const Variable& leaf) const;
  /// Whether gradient(leaf) would return one.
  bool has_gradient(const Variable& leaf) const;

  /// One row per recorded operation, for tape_listing.
  struct Entry {
    const Node* node;
    std::string_view scope;
    std::span<const int> inputs;   ///< slots; -1: needs no gradient
    std::span<const int> outputs;  ///< slots
  };
  std::size_t size() const { return nodes_.size(); }
  Entry entry(std::size_t index) const;
  const Shape& slot_shape(int slot) const { return slots_[static_cast<std::size_t>(slot)].shape; }
  const Parameter* slot_parameter(int slot) const { return slots_[static_cast<std::size_t>(slot)].parameter; }
  /// Remembers the scope of every recorded operation; costs an allocation each, so it is off unless asked for.
  void keep_scopes(bool keep) { keep_scopes_ = keep; }

 private:
  friend class Backward;
  struct Slot {
    Shape shape;
    DType dtype = DType::f32;
    bool kept = false;  // a leaf
    bool root = false;  // one of the losses
    Parameter* parameter = nullptr;
    Tensor gradient;
  };
  struct Recorded {
    std::unique_ptr<Node> node;
    std::vector<int> inputs;
    std::vector<int> outputs;
    std::string scope;
  };

  bool must_record(std::span<const Variable> inputs) const;
  int append(std::unique_ptr<Node> node, std::span<const Variable> inputs, std::span<const Tensor> outputs);
  int add_slot(Slot slot);
  void seed(const Variable& output, Tensor cotangent);
  void run();

  Step* step_;
  Mode mode_;
  bool keep_scopes_ = false;
  std::vector<Slot> slots_;
  std::vector<Recorded> nodes_;
};

}  // namespace engram
