#include "autograd/gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/initializer.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

using Numbers = std::vector<double>;

Numbers to_host(Step& step, const Tensor& tensor) {
  Numbers host(static_cast<std::size_t>(tensor.count()));
  step.backend().copy(host.data(), tensor.data<double>(), tensor.bytes(), CopyKind::device_to_host);
  return host;
}

Tensor to_device(Step& step, const Shape& shape, const Numbers& host) {
  Tensor tensor = step.empty(shape, DType::f64);
  step.backend().copy(tensor.data<double>(), host.data(), tensor.bytes(), CopyKind::host_to_device);
  return tensor;
}

// Joins several outputs into one scalar whose gradient with respect to each is its cotangent.
struct InnerProduct final : Node {
  std::vector<Tensor> cotangents;

  explicit InnerProduct(std::vector<Tensor> tensors) : cotangents(std::move(tensors)) {}
  std::string_view name() const override { return "inner_product"; }
  void backward(Step&, Backward& pass) override {
    for (std::size_t i = 0; i < cotangents.size(); ++i)
      pass.give(static_cast<int>(i), std::exchange(cotangents[i], {}));
  }
};

class Check {
 public:
  Check(Step& step, const CheckedFunction& function, std::span<const Tensor> inputs, const GradcheckOptions& options)
      : step_(step), function_(function), inputs_(inputs), options_(options) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool fixed = std::ranges::find(options.constants, static_cast<int>(i)) != options.constants.end();
      wanted_.push_back(inputs[i] && inputs[i].dtype() == DType::f64 && !fixed);
      values_.push_back(wanted_.back() ? to_host(step, inputs[i]) : Numbers{});
    }
  }

  GradcheckReport run() {
    if (std::ranges::find(wanted_, true) == wanted_.end()) return {};
    const std::vector<Numbers> analytic = gradients();
    GradcheckReport report;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (wanted_[i]) check_input(i, analytic[i], report);
    return report;
  }

 private:
  std::vector<Variable> call(Tape& tape, std::vector<Variable>* leaves) {
    step_.begin(options_.scalars);
    std::vector<Variable> variables(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i]) continue;
      Tensor copy = step_.empty(inputs_[i].shape(), inputs_[i].dtype());
      const void* source = wanted_[i] ? static_cast<const void*>(values_[i].data()) : inputs_[i].raw();
      // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): a new one in every turn
      step_.backend().copy(copy.raw(), source, copy.bytes(),
                           wanted_[i] ? CopyKind::host_to_device : CopyKind::device_to_device);
      variables[i] = wanted_[i] && leaves != nullptr ? tape.leaf(std::move(copy)) : tape.constant(std::move(copy));
    }
    if (leaves != nullptr)
      for (const Variable& variable : variables) leaves->push_back(variable.without_value());
    return function_(variables);
  }

  void draw_cotangents(const std::vector<Variable>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      takes_part_.push_back(outputs[i].requires_grad() && (i == 0 || !options_.root));
      Numbers& cotangent = cotangents_.emplace_back();
      if (!takes_part_.back()) continue;
      cotangent.assign(static_cast<std::size_t>(outputs[i].shape().count()), 1.0);
      const bool given = i < options_.cotangents.size() && !options_.cotangents[i].empty();
      if (given && options_.cotangents[i].size() != cotangent.size())
        throw Error(text("gradcheck: the cotangent of output ", i, " must have ", cotangent.size(), " numbers, got ",
                         options_.cotangents[i].size()));
      if (given)
        cotangent = options_.cotangents[i];
      else if (!options_.root)
        Initializer{Initializer::Kind::normal, 1.0}.fill(cotangent.data(), DType::f64,
                                                         static_cast<std::int64_t>(cotangent.size()), options_.seed,
                                                         text("cotangent ", i));
    }
  }

  // Also decides which outputs take part: those that need a gradient.
  std::vector<Numbers> gradients() {
    Tape tape(step_);
    std::vector<Variable> leaves;
    std::vector<Variable> outputs = call(tape, &leaves);
    draw_cotangents(outputs);
    if (options_.root) {
      outputs.resize(1);
      tape.backward({outputs[0]});
    } else {
      std::vector<Tensor> cotangents;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        cotangents.push_back(takes_part_[i] ? to_device(step_, outputs[i].shape(), cotangents_[i]) : Tensor{});
      backward_from(outputs, std::move(cotangents));
    }
    std::vector<Numbers> gradients;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      // An input that the function does not use has the derivative zero.
      gradients.push_back(tape.has_gradient(leaves[i]) ? to_host(step_, tape.gradient(leaves[i]))
                                                       : Numbers(values_[i].size(), 0.0));
    }
    return gradients;
  }

  std::vector<Numbers> outputs_at(std::size_t input, std::size_t element, double value) {
    const double here = std::exchange(values_[input][element], value);
    Tape tape(step_);
    const std::vector<Variable> outputs = call(tape, nullptr);
    values_[input][element] = here;
    std::vector<Numbers> host;
    for (std::size_t i = 0; i < cotangents_.size(); ++i)
      host.push_back(takes_part_[i] ? to_host(step_, outputs[i].value()) : Numbers{});
    return host;
  }

  double numeric_derivative(std::size_t input, std::size_t element) {
    const double here = values_[input][element];
    const double above = here + options_.difference, below = here - options_.difference;
    const std::vector<Numbers> high = outputs_at(input, element, above), low = outputs_at(input, element, below);
    // Differences first: outputs that do not depend on this element then add exactly nothing.
    double total = 0;
    for (std::size_t i = 0; i < cotangents_.size(); ++i)
      for (std::size_t k = 0; k < cotangents_[i].size(); ++k) total += cotangents_[i][k] * (high[i][k] - low[i][k]);
    return total / (above - below);
  }

  std::vector<std::size_t> chosen_elements(std::size_t input) const {
    const std::size_t count = values_[input].size();
    std::vector<std::size_t> chosen;
    if (static_cast<std::int64_t>(count) <= options_.elements) {
      for (std::size_t k = 0; k < count; ++k) chosen.push_back(k);
      return chosen;
    }
    Numbers draws(static_cast<std::size_t>(options_.elements));
    Initializer{Initializer::Kind::uniform, 0.5}.fill(draws.data(), DType::f64, options_.elements, options_.seed,
                                                      text("elements of input ", input));
    for (const double draw : draws)
      chosen.push_back(std::min(count - 1, static_cast<std::size_t>((draw + 0.5) * static_cast<double>(count))));
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
  }

  void check_input(std::size_t input, const Numbers& analytic, GradcheckReport& report) {
    const std::vector<std::size_t> chosen = chosen_elements(input);
    Numbers numeric;
    double scale = 1e-3;
    for (const std::size_t element : chosen) {
      numeric.push_back(numeric_derivative(input, element));
      scale = std::max(scale, std::abs(numeric.back()));
    }
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      double absolute = std::abs(analytic[chosen[k]] - numeric[k]);
      if (!std::isfinite(absolute)) absolute = std::numeric_limits<double>::infinity();
      const double relative = std::isinf(absolute) ? absolute : absolute / scale;
      if (options_.each)
        options_.each(
            {static_cast<int>(input), static_cast<std::int64_t>(chosen[k]), analytic[chosen[k]], numeric[k], relative});
      if (report.checked++ == 0 || relative > report.worst_relative) {
        report.worst_relative = relative;
        report.worst_absolute = absolute;
        report.input = static_cast<int>(input);
        report.element = static_cast<std::int64_t>(chosen[k]);
        report.analytic = analytic[chosen[k]];
        report.numeric = numeric[k];
      }
    }
  }

  Step& step_;
  const CheckedFunction& function_;
  std::span<const Tensor> inputs_;
  const GradcheckOptions& options_;
  std::vector<bool> wanted_;
  std::vector<Numbers> values_;
  std::vector<bool> takes_part_;     // of every output
  std::vector<Numbers> cotangents_;  // the same
};

}  // namespace

std::string GradcheckReport::line() const {
  return text(checked, " elements, worst relative difference ", worst_relative, " (absolute ", worst_absolute,
              ") at input ", input, " element ", element, ": analytic ", analytic, ", numeric ", numeric);
}

GradcheckReport gradcheck(Step& step, const CheckedFunction& function, std::span<const Tensor> inputs,
                          const GradcheckOptions& options) {
  return Check(step, function, inputs, options).run();
}

void backward_from(std::span<const Variable> outputs, std::vector<Tensor> cotangents) {
  std::vector<Variable> joined;
  std::vector<Tensor> kept;
  for (std::size_t i = 0; i < outputs.size() && i < cotangents.size(); ++i) {
    if (!cotangents[i] || !outputs[i].requires_grad()) continue;
    if (cotangents[i].shape() != outputs[i].shape())
      throw ShapeError(
          text("backward_from: cotangent ", i, " must be ", outputs[i].shape(), ", got ", cotangents[i].shape()));
    joined.push_back(outputs[i]);
    kept.push_back(std::move(cotangents[i]));
  }
  if (joined.empty()) throw Error("backward_from: needs an output that depends on a gradient, and its cotangent");
  Tape& tape = joined[0].tape();
  Step& step = tape.step();
  // Neither the value nor the gradient of the joining scalar is ever read.
  const Variable sum = tape.record(InnerProduct(std::move(kept)), joined, step.empty({1}, DType::f32));
  joined.clear();
  tape.backward(sum, step.empty({1}, DType::f32));
}

}  // namespace engram
