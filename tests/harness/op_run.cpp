#include "tests/harness/op_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "autograd/gradcheck.hpp"
#include "autograd/initializer.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram::harness {
namespace {

constexpr std::uint64_t kSeed = 20190702;
constexpr StepScalars kScalars{.step = 5, .piece = 1, .learning_rate = 0};

/// Of an argument and of its gradient, in a run in `dtype`.
DType dtype_of_value(DType dtype, Role role) { return role == Role::vector ? compute_dtype(dtype) : dtype; }
DType dtype_of_gradient(DType dtype, Role role) { return role == Role::activation ? dtype : compute_dtype(dtype); }

double rounded(double value, DType dtype) {
  if (dtype == DType::f64) return value;
  const auto single = static_cast<float>(value);
  return dtype == DType::bf16 ? static_cast<float>(bf16(single)) : single;
}

std::vector<double> random_numbers(Initializer::Kind kind, double value, std::int64_t count, const std::string& name) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  Initializer{kind, value}.fill(numbers.data(), DType::f64, count, kSeed, name);
  return numbers;
}

template <class T>
Tensor upload(Backend& backend, Tensor tensor, const std::vector<double>& values) {
  std::vector<T> host;
  for (const double value : values) {
    if constexpr (std::is_same_v<T, bf16>)
      host.push_back(bf16(static_cast<float>(value)));
    else
      host.push_back(static_cast<T>(value));
  }
  backend.copy(tensor.data<T>(), host.data(), tensor.bytes(), CopyKind::host_to_device);
  return tensor;
}

Tensor upload(Backend& backend, Tensor tensor, const std::vector<double>& values) {
  if (tensor.dtype() == DType::f64) return upload<double>(backend, std::move(tensor), values);
  if (tensor.dtype() == DType::f32) return upload<float>(backend, std::move(tensor), values);
  if (tensor.dtype() == DType::bf16) return upload<bf16>(backend, std::move(tensor), values);
  if (tensor.dtype() == DType::i64) return upload<std::int64_t>(backend, std::move(tensor), values);
  return upload<std::int32_t>(backend, std::move(tensor), values);
}

template <class T>
void download(Backend& backend, const Tensor& tensor, std::vector<double>& out) {
  std::vector<T> host(static_cast<std::size_t>(tensor.count()));
  backend.copy(host.data(), tensor.data<T>(), tensor.bytes(), CopyKind::device_to_host);
  for (const T value : host) {
    if constexpr (std::is_same_v<T, bf16>)
      out.push_back(static_cast<float>(value));
    else
      out.push_back(static_cast<double>(value));
  }
}

Shape shape_of(const Array64& x) { return Shape(std::span<const std::int64_t>(x.shape)); }

bool contains(const std::vector<int>& list, std::size_t value) {
  return std::ranges::find(list, static_cast<int>(value)) != list.end();
}

// The variables of one run, and what is needed to look at them afterwards.
struct Call {
  std::vector<Tensor> inputs;    // empty handles when the function may consume them
  std::vector<Variable> leaves;  // without values
  std::vector<Variable> outputs;
};

Call call_function(Backend& backend, Tape& tape, const OpCase& op, const std::vector<Input>& inputs,
                   const std::vector<Array64>& values, const RunOptions& options) {
  Step& step = tape.step();
  Call call;
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Variable variable;
    call.inputs.emplace_back();
    if (inputs[i].kind != Input::Kind::absent) {
      Tensor tensor = to_device(backend, step.memory(), values[i], inputs[i], options.dtype);
      if (!op.root) call.inputs.back() = tensor;
      const bool leaf = inputs[i].differentiable && !contains(options.constants, i) && !options.inference;
      variable = leaf ? tape.leaf(std::move(tensor), dtype_of_gradient(options.dtype, inputs[i].role))
                      : tape.constant(std::move(tensor));
    }
    call.leaves.push_back(variable.without_value());
    variables.push_back(std::move(variable));
  }
  for (int use = 0; use < options.uses; ++use) {
    step.begin(kScalars);
    for (Variable& output : op.function(variables)) call.outputs.push_back(std::move(output));
  }
  return call;
}

void run_backward(Backend& backend, Tape& tape, const OpCase& op, Call& call, const RunOptions& options) {
  if (op.root) {
    tape.backward({call.outputs.at(0)});
    return;
  }
  const std::size_t different = call.outputs.size() / static_cast<std::size_t>(options.uses);
  std::vector<Tensor> cotangents;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Variable& output = call.outputs[i];
    cotangents.emplace_back();
    if (!output.requires_grad() || (!options.outputs.empty() && !contains(options.outputs, i % different))) continue;
    std::vector<double> numbers = random_numbers(Initializer::Kind::normal, 1.0, output.shape().count(),
                                                 text(op.name, " cotangent ", i % different));
    for (double& number : numbers) number = rounded(number, options.rounding);
    cotangents.back() = upload(backend, tape.step().empty(output.shape(), output.dtype()), numbers);
  }
  backward_from(call.outputs, std::move(cotangents));
}

}  // namespace

const std::vector<std::unique_ptr<Backend>>& available_backends() {
  static const std::vector<std::unique_ptr<Backend>> backends = [] {
    std::vector<std::unique_ptr<Backend>> found;
    const char* const asked = std::getenv("ENGRAM_TEST_DEVICE");
    for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::simulated, DeviceKind::cuda}) {
      const bool is_asked = asked != nullptr && name_of(kind) == asked;
      if (asked != nullptr && !is_asked && kind != DeviceKind::cpu) continue;
      try {
        found.push_back(open_backend({kind, 0}));
      } catch (const NotAvailable&) {  // not built
        if (is_asked) throw;
      } catch (const DeviceError&) {  // built, but this machine has none
        if (is_asked) throw;
      }
    }
    return found;
  }();
  return backends;
}

const std::vector<std::pair<std::string, std::unique_ptr<Backend>>>& simulated_in_other_orders() {
  static const auto backends = [] {
    std::vector<std::pair<std::string, std::unique_ptr<Backend>>> found;
    for (const char* order : {"reversed", "shuffled:3"}) {
      setenv("ENGRAM_SIMULATED_ORDER", order, 1);  // read when the device is opened
      found.emplace_back(order, open_backend({DeviceKind::simulated, 0}));
      unsetenv("ENGRAM_SIMULATED_ORDER");
    }
    return found;
  }();
  return backends;
}

bool runs_in_bf16(const Backend& backend, const OpCase& op) { return op.tolerance.bf16 > 0 && backend.stores_bf16(); }

const StepScalars& run_scalars() { return kScalars; }
std::uint64_t run_seed() { return kSeed; }
RandomStream random_stream(std::uint32_t operation) { return {kSeed, operation, &kScalars}; }

std::vector<Array64> input_values(const std::string& name, const std::vector<Input>& inputs, DType rounding) {
  std::vector<Array64> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    Array64& x = all.emplace_back();
    if (input.kind == Input::Kind::absent) continue;
    for (int axis = 0; axis < input.shape.rank(); ++axis) x.shape.push_back(input.shape[axis]);
    const std::string stream = text(name, " input ", i);
    const std::int64_t count = input.shape.count();
    if (input.kind == Input::Kind::given) {
      x.data = input.values;
      if (static_cast<std::int64_t>(x.data.size()) != count)
        throw Error(text(name, ": input ", i, " of shape ", input.shape, " was given ", x.data.size(), " values"));
    } else if (input.kind == Input::Kind::normal) {
      x.data = random_numbers(Initializer::Kind::normal, 1.0, count, stream);
    } else {
      x.data = random_numbers(Initializer::Kind::uniform, 0.5, count, stream);  // in (-0.5, 0.5)
      for (double& value : x.data) value = input.low + (value + 0.5) * (input.high - input.low);
    }
    const DType dtype = dtype_of_value(rounding, input.role);
    for (double& value : x.data) value = input.integer ? std::floor(value) : rounded(value, dtype);
  }
  return all;
}

Tensor to_device(Backend& backend, Allocator& memory, const Array64& values, const Input& input, DType dtype) {
  const DType stored = input.integer ? (input.wide ? DType::i64 : DType::i32) : dtype_of_value(dtype, input.role);
  return upload(backend, Tensor(shape_of(values), stored, backend.device(), memory), values.data);
}

Array64 to_host(Backend& backend, const Tensor& tensor) {
  Array64 host;
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) host.shape.push_back(tensor.shape()[axis]);
  if (host.shape.empty()) host.shape.push_back(1);
  if (tensor.dtype() == DType::f64) download<double>(backend, tensor, host.data);
  if (tensor.dtype() == DType::f32) download<float>(backend, tensor, host.data);
  if (tensor.dtype() == DType::bf16) download<bf16>(backend, tensor, host.data);
  if (tensor.dtype() == DType::i32) download<std::int32_t>(backend, tensor, host.data);
  if (tensor.dtype() == DType::i64) download<std::int64_t>(backend, tensor, host.data);
  return host;
}

OpResult run_op(Backend& backend, const OpCase& op, std::size_t set, const RunOptions& asked) {
  RunOptions options = asked;
  if (options.dtype == DType::bf16) options.rounding = DType::bf16;
  const std::vector<Input>& inputs = op.inputs.at(set);
  const std::vector<Array64> values = input_values(op.name, inputs, options.rounding);
  OpResult result;
  GuardedAllocator memory(backend, options.fill);
  {
    Step step(backend, memory, kSeed);
    Tape tape(step, options.inference ? Tape::Mode::inference : Tape::Mode::training);
    Call call = call_function(backend, tape, op, inputs, values, options);
    result.recorded = tape.size();
    for (const Variable& output : call.outputs) {
      result.outputs.push_back(to_host(backend, output.value()));
      result.output_dtypes.push_back(output.dtype());
    }
    if (result.recorded > 0) run_backward(backend, tape, op, call, options);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      result.gradients.emplace_back();
      result.gradient_dtypes.push_back(options.dtype);
      if (tape.has_gradient(call.leaves[i])) {
        const Tensor& gradient = tape.gradient(call.leaves[i]);
        result.gradients.back() = to_host(backend, gradient);
        result.gradient_dtypes.back() = gradient.dtype();
      }
      if (call.inputs[i] && to_host(backend, call.inputs[i]).data != values[i].data)
        result.faults.push_back(text("input ", i, " was changed"));
    }
  }
  for (const std::string& fault : memory.faults()) result.faults.push_back(fault);
  if (memory.bytes_in_use() != 0) result.faults.push_back(text(memory.bytes_in_use(), " bytes were not given back"));
  return result;
}

}  // namespace engram::harness
