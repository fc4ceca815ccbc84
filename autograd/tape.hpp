#pragma once
/// The tape: a vector of operations in the order in which they ran, run backwards once. Each operation is freed as
/// soon as it ran, so its memory serves the gradients that come after it.

#include <array>
#include <concepts>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/backward.hpp"
#include "autograd/node.hpp"
#include "autograd/parameter.hpp"
#include "autograd/tape_observer.hpp"
#include "autograd/variable.hpp"

namespace engram {

/// Sees a backward pass go on.
class BackwardWatcher {
 public:
  virtual ~BackwardWatcher() = default;
  /// Nothing will be added to this parameter's gradient any more. Once for every dense parameter that the tape has.
  virtual void final_gradient(Parameter& parameter) = 0;
  /// An operation's backward pass has been run.
  virtual void ran() {}
};

class Tape {
 public:
  enum class Mode {
    training,  ///< records, dropout is active
    inference  ///< records nothing, dropout is the identity
  };

  /// If the step has a TapeObserver, a tape for training tells it what it does.
  explicit Tape(Step& step, Mode mode = Mode::training);
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Step& step() const { return *step_; }
  bool training() const { return mode_ == Mode::training; }

  /// A value that needs no gradient.
  Variable constant(Tensor value) { return Variable(std::move(value), this, -1); }
  /// A trained value as the step's activations need it; its gradient is added to the parameter's own memory. A buffer
  /// is a constant, and so is what is frozen.
  Variable parameter(Parameter& parameter);
  /// A parameter's rows [begin, end) of its first axis alone, whose memory they share. Throws ShapeError outside it,
  /// Error for a table or a buffer.
  Variable parameter(Parameter& parameter, std::int64_t begin, std::int64_t end);
  /// A value whose gradient is kept on the tape, for checks and teaching: see gradient().
  Variable leaf(Tensor value) {
    const DType dtype = value.dtype();
    return leaf(std::move(value), dtype);
  }
  /// A leaf with a gradient of another dtype, as matrices of parameters have it: bf16, with a gradient in f32.
  Variable leaf(Tensor value, DType gradient);

  /// For an operation that knows its gradients in the forward pass, because its loss can only be a root of backward:
  /// a dense parameter's own gradient, to which they are added at once; none for what is no parameter, whose gradient
  /// the node hands over in backward.
  Target final_gradient(const Variable& input) const;

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
  /// record() with a gradient of another dtype than the output's: what is part of a matrix has a gradient like it.
  template <std::derived_from<Node> N>
  Variable record(N node, std::initializer_list<Variable> inputs, Tensor output, DType gradient) {
    Variable variable = record(std::move(node), inputs, std::move(output));
    if (variable.requires_grad()) slots_[static_cast<std::size_t>(variable.slot_)].dtype = gradient;
    return variable;
  }
  /// The dtype of a variable's gradient; its own when it needs none.
  DType gradient_dtype(const Variable& variable) const {
    return variable.requires_grad() ? slots_[static_cast<std::size_t>(variable.slot_)].dtype : variable.dtype();
  }
  /// record() with several outputs.
  template <std::derived_from<Node> N, std::size_t kOutputs>
  std::array<Variable, kOutputs> record_outputs(N node, std::span<const Variable> inputs,
                                                std::array<Tensor, kOutputs> outputs) {
    int first = -1;
    if (must_record(inputs)) first = append(make_node(std::move(node)), inputs, outputs);
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
  void backward(std::span<const Variable> scalar_losses);
  void backward(std::initializer_list<Variable> scalar_losses) {
    backward(std::span<const Variable>(scalar_losses.begin(), scalar_losses.size()));
  }
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
  /// What has arrived of its gradient, of a parameter what it is in all; empty: nothing, or rows of a table.
  Tensor slot_gradient(int slot) const;
  /// Not owned; it must outlive backward().
  void watch_backward(BackwardWatcher* watcher) { watcher_ = watcher; }
  /// Remembers the scope of every recorded operation; costs an allocation each, so it is off unless asked for.
  void keep_scopes(bool keep) { keep_scopes_ = keep; }

 private:
  friend class Backward;
  struct Slot {
    Shape shape;
    DType dtype = DType::f32;  // of the gradient
    bool kept = false;         // a leaf
    bool root = false;         // one of the losses
    Parameter* parameter = nullptr;
    std::int64_t first_row = 0;  // of the parameter's
    Tensor gradient;
    /// Where a parameter's gradient goes: all of it, or the rows that were taken.
    Tensor parameter_gradient() const;
  };
  // Gives a node back to where its memory came from.
  struct NodeDeleter {
    std::pmr::memory_resource* memory = nullptr;
    std::size_t size = 0, alignment = 0;
    void operator()(Node* node) const {
      void* const begin = dynamic_cast<void*>(node);
      node->~Node();
      memory->deallocate(begin, size, alignment);
    }
  };
  using NodePointer = std::unique_ptr<Node, NodeDeleter>;
  struct Recorded {
    NodePointer node;
    // Slots of inputs, then of outputs, in places_.
    std::size_t first = 0, input_count = 0, output_count = 0;
    std::string scope;
  };

  template <class N>
  NodePointer make_node(N node) {
    std::pmr::memory_resource* memory = step_->objects();
    void* const begin = memory->allocate(sizeof(N), alignof(N));
    return NodePointer(::new (begin) N(std::move(node)), NodeDeleter{memory, sizeof(N), alignof(N)});
  }
  std::span<const int> inputs_of(const Recorded& recorded) const {
    return std::span(places_).subspan(recorded.first, recorded.input_count);
  }
  std::span<const int> outputs_of(const Recorded& recorded) const {
    return std::span(places_).subspan(recorded.first + recorded.input_count, recorded.output_count);
  }

  bool must_record(std::span<const Variable> inputs) const;
  int append(NodePointer node, std::span<const Variable> inputs, std::span<const Tensor> outputs);
  int add_slot(Slot slot);
  /// add_slot() of a leaf or parameter with this value.
  int enter(Slot slot, const Tensor& value);
  void seed(const Variable& output, Tensor cotangent);
  void run();
  std::vector<std::pair<std::size_t, Parameter*>> find_first_uses() const;
  void tell_final(std::size_t node);

  Step* step_;
  Mode mode_;
  bool keep_scopes_ = false;
  std::pmr::vector<Slot> slots_;
  std::pmr::vector<Recorded> nodes_;
  std::pmr::vector<int> places_;
  BackwardWatcher* watcher_ = nullptr;
  TapeObserver* observer_ = nullptr;
  /// Where it is watched: parameters, and the first operation that has them as inputs, the last to run backwards.
  std::vector<std::pair<std::size_t, Parameter*>> first_uses_;
};

}  // namespace engram
