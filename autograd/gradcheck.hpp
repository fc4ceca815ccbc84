#pragma once
/// Numerical check of derivatives. For a function y = f(x) and a fixed random cotangent c, the analytic gradient of
/// sum(c y) is compared with central differences (f(x + h e) - f(x - h e)) / 2h. The cotangent must be random: through
/// a plain sum, softmax and every other op whose outputs sum to a constant would pass with any derivative near zero.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/variable.hpp"
#include "core/step.hpp"

namespace engram {

/// Takes fresh variables in every call, so it may consume them; returns one or more outputs.
using CheckedFunction = std::function<std::vector<Variable>(std::span<Variable> inputs)>;

/// One element of an input, whose derivative was computed in both ways.
struct CheckedElement {
  int input = -1;
  std::int64_t element = -1;  ///< flat, row-major
  double analytic = 0;
  double numeric = 0;
  double relative = 0;  ///< as GradcheckReport::worst_relative
};

struct GradcheckOptions {
  double difference = 1e-5;     ///< h
  std::int64_t elements = 200;  ///< of every input; when it has more, as many random ones are checked
  std::uint64_t seed = 1;       ///< of the cotangent and of the choice of elements
  std::vector<int> constants;   ///< inputs that are not differentiated; those that are not f64 never are
  bool root = false;            ///< output 0 is a scalar that must be a root of backward; others are not used
  StepScalars scalars;          ///< written before every call, so that random operations repeat their numbers
  /// Numbers in the place of the random cotangent of output i, of which cotangents[i] has as many; an empty list, or
  /// none: random ones.
  std::vector<std::vector<double>> cotangents;
  std::function<void(const CheckedElement&)> each;  ///< when given, sees every element that is checked, in order
};

/// The worst element; the fields from `input` on describe it. Without any checked element all stay as they are here.
struct GradcheckReport {
  std::int64_t checked = 0;   ///< number of elements
  double worst_relative = 0;  ///< worst_absolute over the largest numeric derivative of the same input, at least 1e-3
  double worst_absolute = 0;  ///< |analytic - numeric|; infinite when one of them is not finite
  int input = -1;
  std::int64_t element = -1;  ///< flat, row-major
  double analytic = 0;
  double numeric = 0;

  /// One line with all of it.
  std::string line() const;
};

/// `inputs`: f64 tensors are differentiated, others and empty ones (absent variables) are handed on. They are not
/// changed. A wrong derivative does not throw, it is reported; what `function` throws passes through. About
/// 2 elements + 1 calls per input; step.begin() is called before each, and step's memory is used. Throws Error when no
/// output depends on an input that is differentiated.
GradcheckReport gradcheck(Step& step, const CheckedFunction& function, std::span<const Tensor> inputs,
                          const GradcheckOptions& options = {});

/// Runs the outputs' tape backwards from sum over i of sum(cotangents[i] * outputs[i]). An empty cotangent, or an
/// output that needs no gradient, is left out. A cotangent has the shape and dtype of its output and is handed over:
/// nobody else may hold it. Throws ShapeError for another shape, Error when no output is left.
void backward_from(std::span<const Variable> outputs, std::vector<Tensor> cotangents);

}  // namespace engram
