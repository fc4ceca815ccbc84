#include "tests/harness/op_checks.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/array_difference.hpp"

namespace engram::harness {
namespace {

void append(Faults& faults, const Faults& more) { faults.insert(faults.end(), more.begin(), more.end()); }

// Products may be grouped in another way when something is left out; in f64 that stays far below any real fault.
constexpr double kSameValue = 1e-12;
double same_value(DType dtype) { return dtype == DType::f64 ? kSameValue : dtype == DType::f32 ? 1e-5 : kRounding; }

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

Faults compare_runs(const std::string& what, const OpResult& got, const OpResult& wanted) {
  Faults faults = compare_bits(text(what, ": output"), got.outputs, wanted.outputs);
  append(faults, compare_bits(text(what, ": gradient of input"), got.gradients, wanted.gradients));
  append(faults, got.faults);
  return faults;
}

Faults check_outputs_alone(Backend& backend, const OpCase& op, std::size_t set, const OpResult& whole) {
  std::vector<Array64> sums(whole.gradients.size());
  for (std::size_t output = 0; output < whole.outputs.size(); ++output) {
    OpResult alone;
    try {
      alone = run_op(backend, op, set, {.outputs = {static_cast<int>(output)}});
    } catch (const Error&) {
      if (whole.outputs.size() == 1) throw;
      continue;  // an output without a gradient
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (!alone.gradients[i].given()) continue;
      if (!sums[i].given()) sums[i] = reference::zeros(alone.gradients[i].shape);
      for (std::size_t k = 0; k < sums[i].data.size(); ++k) sums[i].data[k] += alone.gradients[i].data[k];
    }
  }
  return compare_norms("sum over the outputs, each differentiated alone: gradient of input", sums, whole.gradients,
                       kSameValue, op.tolerance.negligible);
}

Faults check_inference(Backend& backend, const OpCase& op, std::size_t set, const OpResult& whole) {
  Faults faults;
  const OpResult inference = run_op(backend, op, set, {.inference = true});
  append(faults, inference.faults);
  if (inference.recorded != 0) faults.push_back(text("inference mode recorded ", inference.recorded, " operations"));
  if (!op.dropout)
    append(faults, compare_norms("inference mode: output", inference.outputs, whole.outputs, kSameValue,
                                 op.tolerance.negligible));
  return faults;
}

Faults check_bad_call(Backend& backend, const OpCase& op, const BadCall& bad, const std::string& label) {
  Faults faults;
  GuardedAllocator memory(backend);
  {
    Step step(backend, memory, run_seed());
    Tape tape(step);
    const std::vector<Array64> values = input_values(op.name, bad.inputs, DType::f32);
    std::vector<Variable> variables;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Input& input = bad.inputs[i];
      Variable variable;
      if (input.kind != Input::Kind::absent) {
        Tensor tensor = to_device(backend, memory, values[i], input, DType::f32);
        variable = input.differentiable ? tape.leaf(std::move(tensor)) : tape.constant(std::move(tensor));
      }
      variables.push_back(std::move(variable));
    }
    try {
      (bad.function ? bad.function : op.function)(variables);
      faults.push_back(text(label, ": was not refused"));
    } catch (const Error& error) {
      const std::string message = error.what();
      for (const std::string& part : bad.contains)
        if (message.find(part) == std::string::npos)
          faults.push_back(text(label, ": the message must contain '", part, "', got: ", message));
      if (message.find(": ") == std::string::npos)
        faults.push_back(text(label, ": the message must read 'op: the rule, got the facts', got: ", message));
    }
  }
  append(faults, memory.faults());
  if (memory.bytes_in_use() != 0) faults.push_back(text(label, ": ", memory.bytes_in_use(), " bytes were left behind"));
  return faults;
}

}  // namespace

Faults check_reference(Backend& backend, const OpCase& op, std::size_t set) {
  const std::vector<Array64> inputs = input_values(op.name, op.inputs.at(set), DType::f32);
  std::vector<Array64> wanted = op.reference(inputs);
  for (Array64& output : wanted)
    if (output.shape.empty()) output.shape.push_back(1);
  const OpResult run = run_op(backend, op, set);
  return compare_elements("forward: output", run.outputs, wanted, op.tolerance.forward);
}

Faults check_gradient(Backend& backend, const OpCase& op, std::size_t set, GradcheckReport* report) {
  const std::vector<Input>& inputs = op.inputs.at(set);
  const std::vector<Array64> values = input_values(op.name, inputs, DType::f32);
  GuardedAllocator memory(backend);
  Step step(backend, memory, run_seed());
  GradcheckOptions options{.root = op.root, .scalars = run_scalars()};
  // Thousands of calls on tiny shapes: a second thread only costs, and check_determinism shows that it changes nothing.
  const Threads one(1);
  std::vector<Tensor> tensors;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].differentiable) elements += inputs[i].shape.count();
    tensors.emplace_back();
    if (inputs[i].kind == Input::Kind::absent) continue;
    tensors.back() = to_device(backend, memory, values[i], inputs[i], DType::f64);
    if (!inputs[i].differentiable) options.constants.push_back(static_cast<int>(i));
  }
  const GradcheckReport found = gradcheck(
      step, [&op](std::span<Variable> x) { return op.function(x); }, tensors, options);
  if (report != nullptr) *report = found;
  if (found.checked >= std::min<std::int64_t>(elements, 1) && found.worst_relative <= op.tolerance.gradient) return {};
  return {text("gradient: ", found.line())};
}

Faults check_precision(Backend& backend, Backend& truth, const OpCase& op, std::size_t set) {
  Faults faults;
  const double sums = op.tolerance.bf16_sums > 0 ? op.tolerance.bf16_sums : op.tolerance.f32;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && !runs_in_bf16(backend, op)) continue;
    const OpResult wanted = run_op(truth, op, set, {.rounding = dtype});
    const OpResult got = run_op(backend, op, set, {.dtype = dtype});
    append(faults, got.faults);
    const auto tolerances = [&](const std::vector<DType>& dtypes) {
      std::vector<double> each;
      for (const DType of : dtypes)
        each.push_back(dtype == DType::f32 ? op.tolerance.f32 : of == DType::bf16 ? op.tolerance.bf16 : sums);
      return each;
    };
    const std::string label = text(dtype, " on ", backend.device());
    append(faults, compare_norms(label + ": output", got.outputs, wanted.outputs, tolerances(got.output_dtypes),
                                 op.tolerance.negligible));
    append(faults, compare_norms(label + ": gradient of input", got.gradients, wanted.gradients,
                                 tolerances(got.gradient_dtypes), op.tolerance.negligible));
  }
  return faults;
}

Faults check_same_f64(Backend& backend, Backend& truth, const OpCase& op, std::size_t set) {
  const OpResult wanted = run_op(truth, op, set);
  const OpResult got = run_op(backend, op, set);
  Faults faults = got.faults;
  append(faults, compare_norms("f64: output", got.outputs, wanted.outputs, kSameValue, op.tolerance.negligible));
  append(faults,
         compare_norms("f64: gradient of input", got.gradients, wanted.gradients, kSameValue, op.tolerance.negligible));
  return faults;
}

Faults check_add_mode(Backend& backend, const OpCase& op, std::size_t set, DType dtype) {
  if (op.root) return {};  // it consumes its input: there is no second use
  OpResult once = run_op(backend, op, set, {.dtype = dtype});
  const OpResult twice = run_op(backend, op, set, {.dtype = dtype, .uses = 2});
  for (Array64& gradient : once.gradients)
    for (double& value : gradient.data) value *= 2;
  Faults faults = compare_norms("used twice: gradient of input", twice.gradients, once.gradients, same_value(dtype),
                                op.tolerance.negligible);
  append(faults, twice.faults);
  return faults;
}

Faults check_unwanted(Backend& backend, const OpCase& op, std::size_t set) {
  const OpResult whole = run_op(backend, op, set);
  Faults faults = whole.faults;
  RunOptions nothing;
  for (std::size_t i = 0; i < op.inputs.at(set).size(); ++i) {
    if (!op.inputs[set][i].differentiable) continue;
    nothing.constants.push_back(static_cast<int>(i));
    const OpResult without = run_op(backend, op, set, {.constants = {static_cast<int>(i)}});
    std::vector<Array64> wanted = whole.gradients;
    wanted[i] = {};
    const std::string label = text("input ", i, " constant: ");
    // With the only input a constant nothing is recorded, and no other gradient exists to compare.
    append(faults,
           compare_norms(label + "output", without.outputs, whole.outputs, kSameValue, op.tolerance.negligible));
    append(faults,
           compare_norms(label + "gradient of input", without.gradients, wanted, kSameValue, op.tolerance.negligible));
    append(faults, without.faults);
  }
  const OpResult forward_only = run_op(backend, op, set, nothing);
  append(faults, forward_only.faults);
  if (forward_only.recorded != 0)
    faults.push_back(text("nothing needs a gradient, but ", forward_only.recorded, " operations were recorded"));
  append(faults, compare_norms("no gradient wanted: output", forward_only.outputs, whole.outputs, kSameValue,
                               op.tolerance.negligible));
  if (!op.root && whole.recorded > 0 && whole.outputs.size() > 1)
    append(faults, check_outputs_alone(backend, op, set, whole));
  append(faults, check_inference(backend, op, set, whole));
  return faults;
}

Faults check_memory(Backend& backend, const OpCase& op, std::size_t set, DType dtype) {
  const OpResult filled = run_op(backend, op, set, {.dtype = dtype});
  const OpResult zeroed = run_op(backend, op, set, {.dtype = dtype, .fill = 0});
  Faults faults = compare_runs("fresh memory NaN or zero", filled, zeroed);
  const auto has_nan = [](const Array64& x) {
    return std::ranges::any_of(x.data, [](double v) { return std::isnan(v); });
  };
  for (std::size_t i = 0; i < filled.outputs.size(); ++i)
    if (has_nan(filled.outputs[i])) faults.push_back(text("output ", i, " has a NaN: was every element written?"));
  for (std::size_t i = 0; i < filled.gradients.size(); ++i)
    if (has_nan(filled.gradients[i]))
      faults.push_back(text("gradient of input ", i, " has a NaN: was every element written?"));
  return faults;
}

Faults check_determinism(Backend& backend, const OpCase& op, std::size_t set, DType dtype) {
  const bool cpu = backend.device().kind == DeviceKind::cpu;
  const OpResult first = run_op(backend, op, set, {.dtype = dtype});
  Faults faults = compare_runs("second run", run_op(backend, op, set, {.dtype = dtype}), first);
  if (backend.device().kind == DeviceKind::simulated)
    for (const auto& [order, other] : simulated_in_other_orders())
      append(faults, compare_runs(order, run_op(*other, op, set, {.dtype = dtype}), first));
  if (!cpu || !op.cpu_threads_exact) return faults;
  for (const int count : {1, 2}) {
    const Threads threads(count);
    append(faults, compare_runs(text(count, " threads"), run_op(backend, op, set, {.dtype = dtype}), first));
  }
  return faults;
}

Faults check_errors(Backend& backend, const OpCase& op) {
  Faults faults;
  for (std::size_t i = 0; i < op.errors.size(); ++i)
    append(faults, check_bad_call(backend, op, op.errors[i], text("bad call ", i)));
  return faults;
}

}  // namespace engram::harness
