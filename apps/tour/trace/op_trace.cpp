#include "apps/tour/trace/op_trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "apps/tour/trace/nan_memory.hpp"
#include "autograd/tape.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/step.hpp"

namespace engram::tour {
namespace {

/// A number as the example has it in the element type of the tensor.
template <class T>
void copy_numbers(Backend& backend, const std::vector<double>& numbers, const Tensor& tensor) {
  const std::vector<T> host(numbers.begin(), numbers.end());
  backend.copy(tensor.data<T>(), host.data(), tensor.bytes(), CopyKind::host_to_device);
}

Tensor tensor_of(Backend& backend, Allocator& memory, const ExampleInput& input) {
  Tensor tensor(input.shape, input.dtype, backend.device(), memory);
  if (input.dtype == DType::i32)
    copy_numbers<std::int32_t>(backend, input.numbers, tensor);
  else if (input.dtype == DType::i64)
    copy_numbers<std::int64_t>(backend, input.numbers, tensor);
  else
    copy_numbers<double>(backend, input.numbers, tensor);
  return tensor;
}

std::vector<double> numbers_of(Backend& backend, const Tensor& tensor) {
  const auto widened = [](const auto& host) { return std::vector<double>(host.begin(), host.end()); };
  if (tensor.dtype() == DType::i32) return widened(host_copy<std::int32_t>(backend, tensor));
  if (tensor.dtype() == DType::i64) return widened(host_copy<std::int64_t>(backend, tensor));
  return host_doubles(backend, tensor);
}

/// Follows kernels, and what they do to the gradients of leaves while a pass goes backwards.
class KernelWatch final : public KernelObserver {
 public:
  explicit KernelWatch(Backend& backend) : backend_(&backend) {}

  /// From now on; the leaves' values are not held.
  void watch_gradients(const Tape& tape, std::vector<Variable> leaves) {
    tape_ = &tape;
    leaves_ = std::move(leaves);
    before_.resize(leaves_.size());
    writes_.resize(leaves_.size());
  }
  void before(const char*) override {
    for (std::size_t i = 0; i < leaves_.size(); ++i) before_[i] = gradient(i);
  }
  void after(const char* kernel) override {
    kernels_.emplace_back(kernel);
    for (std::size_t i = 0; i < leaves_.size(); ++i)
      if (const std::vector<double> now = gradient(i); !same_bits(now, before_[i])) add_write(i, now, kernel);
  }
  std::vector<std::string> take_kernels() { return std::exchange(kernels_, {}); }
  std::vector<GradientWrite> writes(std::size_t leaf) const {
    if (writes_[leaf].empty() && tape_->has_gradient(leaves_[leaf])) return {{GradientWrite::Kind::handed_over, ""}};
    return writes_[leaf];
  }

 private:
  static bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  }
  static bool is_nan(double number) { return std::isnan(number); }

  void add_write(std::size_t leaf, const std::vector<double>& now, const char* kernel) {
    using Kind = GradientWrite::Kind;
    const bool fresh = std::ranges::all_of(before_[leaf], is_nan);
    if (writes_[leaf].empty() && !fresh) writes_[leaf].push_back({Kind::handed_over, ""});
    const Kind kind = !fresh ? Kind::added : std::ranges::any_of(now, is_nan) ? Kind::in_part : Kind::replaced;
    writes_[leaf].push_back({kind, kernel});
  }
  std::vector<double> gradient(std::size_t leaf) const {
    if (tape_ == nullptr || !tape_->has_gradient(leaves_[leaf])) return {};
    return host_doubles(*backend_, tape_->gradient(leaves_[leaf]));
  }

  Backend* backend_;
  const Tape* tape_ = nullptr;
  std::vector<Variable> leaves_;
  std::vector<std::vector<double>> before_;
  std::vector<std::vector<GradientWrite>> writes_;
  std::vector<std::string> kernels_;
};

class Tracer {
 public:
  Tracer(const OpExample& example, Device device) : example_(example), backend_(open_backend(device)) {
    backend_->set_threads(1);
  }
  ~Tracer() { backend_->set_threads(threads_before_); }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  OpTrace run() {
    run_once();
    if (!example_.root) run_twice();
    compare();
    return std::move(trace_);
  }

 private:
  using Variables = std::vector<Variable>;

  /// Leaves and constants, as the example says.
  Variables variables_on(Tape& tape) {
    Variables variables;
    for (const ExampleInput& input : example_.inputs) {
      Tensor tensor = tensor_of(*backend_, memory_, input);
      variables.push_back(input.differentiated() ? tape.leaf(std::move(tensor)) : tape.constant(std::move(tensor)));
    }
    return variables;
  }
  static Variables without_values(const Variables& variables) {
    Variables places;
    for (const Variable& variable : variables)
      if (variable.requires_grad()) places.push_back(variable.without_value());
    return places;
  }
  TracedTensor traced(std::string name, const Tensor& tensor, bool differentiated) {
    return {std::move(name), tensor.shape(), tensor.dtype(), numbers_of(*backend_, tensor), differentiated};
  }
  Tensor cotangent(std::size_t output) {
    return tensor_of(*backend_, memory_, drawn(example_.outputs[output], trace_.outputs[output].shape));
  }

  void note_inputs() {
    for (const ExampleInput& input : example_.inputs)
      trace_.inputs.push_back(
          {std::string(input.name), input.shape, input.dtype, input.numbers, input.differentiated()});
  }
  void note_outputs(const Variables& outputs) {
    if (outputs.size() != example_.outputs.size())
      throw Error(text("trace: the example ", example_.name, " must name ", outputs.size(), " outputs, got ",
                       example_.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool differentiated = outputs[i].requires_grad() && (i == 0 || !example_.root);
      trace_.outputs.push_back(traced(std::string(example_.outputs[i]), outputs[i].value(), differentiated));
    }
  }
  void note_tape(const Tape& tape) {
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const Node& node = *tape.entry(i).node;
      trace_.operations.emplace_back(node.name());
      for (const Node::Saved& saved : node.saved())
        if (saved.tensor)
          trace_.kept.push_back(
              {std::string(node.name()), std::string(saved.name), saved.tensor.shape(), saved.tensor.bytes()});
    }
  }

  /// Runs the tape from these outputs, each with its cotangent.
  void go_back(Tape& tape, Variables outputs) {
    if (example_.root) {
      outputs.resize(1);
      tape.backward(outputs);
      return;
    }
    std::vector<Tensor> cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t output = i % trace_.outputs.size();
      cotangents.push_back(trace_.outputs[output].differentiated ? cotangent(output) : Tensor{});
    }
    backward_from(outputs, std::move(cotangents));
  }

  void run_once() {
    note_inputs();
    step_.begin({});
    KernelWatch watch(*backend_);
    Tape tape(step_);
    Variables variables = variables_on(tape);
    const Variables leaves = without_values(variables);
    step_.observe(&watch);
    Variables outputs = example_.function(variables);
    trace_.forward_kernels = watch.take_kernels();
    variables.clear();
    note_outputs(outputs);
    note_tape(tape);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (trace_.outputs[i].differentiated)
        trace_.cotangents.push_back(example_.root
                                        ? TracedTensor{std::string(example_.outputs[i]), {1}, DType::f64, {1}, true}
                                        : traced(std::string(example_.outputs[i]), cotangent(i), true));
    watch.watch_gradients(tape, leaves);
    go_back(tape, std::move(outputs));
    trace_.backward_kernels = watch.take_kernels();
    step_.observe(nullptr);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      TracedGradient& gradient = trace_.gradients.emplace_back();
      if (tape.has_gradient(leaves[i])) gradient.tensor = traced("", tape.gradient(leaves[i]), true);
      gradient.writes = watch.writes(i);
    }
    std::size_t next = 0;
    for (const ExampleInput& input : example_.inputs)
      if (input.differentiated()) trace_.gradients[next++].tensor.name = input.name;
  }

  /// The operation a second time on the same inputs, so that every gradient comes in two parts.
  void run_twice() {
    step_.begin({});
    KernelWatch watch(*backend_);
    Tape tape(step_);
    const Variables variables = variables_on(tape);
    Variables first = variables, second = variables;  // a function may move out of what it gets
    Variables outputs = example_.function(first);
    std::ranges::move(example_.function(second), std::back_inserter(outputs));
    const Variables leaves = without_values(variables);
    watch.watch_gradients(tape, leaves);
    step_.observe(&watch);
    go_back(tape, std::move(outputs));
    step_.observe(nullptr);
    for (std::size_t i = 0; i < leaves.size(); ++i) trace_.gradients[i].writes_twice = watch.writes(i);
  }

  void compare() {
    std::vector<Tensor> inputs;
    GradcheckOptions options;
    std::vector<std::size_t> place;  // of an input among those that are differentiated
    std::size_t differentiated = 0;
    for (std::size_t i = 0; i < example_.inputs.size(); ++i) {
      inputs.push_back(tensor_of(*backend_, memory_, example_.inputs[i]));
      if (example_.inputs[i].constant) options.constants.push_back(static_cast<int>(i));
      place.push_back(differentiated);
      if (example_.inputs[i].differentiated()) ++differentiated;
    }
    options.root = example_.root;
    std::size_t next = 0;
    for (const TracedTensor& output : trace_.outputs)
      options.cotangents.push_back(output.differentiated ? trace_.cotangents[next++].numbers : std::vector<double>{});
    options.each = [&](const CheckedElement& element) {
      trace_.gradients[place[static_cast<std::size_t>(element.input)]].elements.push_back(element);
    };
    trace_.report = gradcheck(step_, example_.function, inputs, options);
  }

  const OpExample& example_;
  std::unique_ptr<Backend> backend_;
  int threads_before_ = backend_->threads();
  NanMemory memory_{*backend_};
  Step step_{*backend_, memory_, /*seed=*/1};
  OpTrace trace_;
};

}  // namespace

OpTrace trace_op(const OpExample& example, Device device) { return Tracer(example, device).run(); }

}  // namespace engram::tour
