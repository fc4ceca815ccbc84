#include "tests/exercises/06_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/exercises/checks/all.hpp"

namespace engram::exercises::check_06 {
namespace {

struct Answer {
  std::function<std::vector<double>(const ScalarFunction&, std::vector<double>)> gradient;
};

double f(std::span<const double> x) {
  return std::exp(x[0]) * std::sin(x[1]) + x[0] * x[1] * x[2] + x[2] * x[2] * x[2];
}

std::vector<double> by_calculus(std::span<const double> x) {
  return {std::exp(x[0]) * std::sin(x[1]) + x[1] * x[2], std::exp(x[0]) * std::cos(x[1]) + x[0] * x[2],
          x[0] * x[1] + 3 * x[2] * x[2]};
}

/// Where f is called: offsets from `x`, one row for each call.
std::vector<std::vector<double>> calls_of(const Answer& answer, const std::vector<double>& x) {
  std::vector<std::vector<double>> calls;
  answer.gradient(
      [&](std::span<const double> at) {
        std::vector<double> offsets;
        for (std::size_t i = 0; i < x.size(); ++i) offsets.push_back(at[i] - x[i]);
        calls.push_back(offsets);
        return f(at);
      },
      x);
  return calls;
}

void run(const Answer& answer, std::vector<Part>& parts) {
  const std::vector<double> x{0.5, 1.25, -0.75};
  const std::vector<std::vector<double>> calls = calls_of(answer, x);
  double moved = 0, largest = 0, smallest = 1, unequal = 0;
  bool both_sides = true;
  for (const std::vector<double>& call : calls) {
    const auto count = std::ranges::count_if(call, [](double offset) { return std::abs(offset) > 1e-15; });
    moved = std::max(moved, static_cast<double>(count));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    double above = 0, below = 0;
    for (const std::vector<double>& call : calls) {
      above = std::max(above, call[i]);
      below = std::min(below, call[i]);
    }
    both_sides = both_sides && above > 0 && below < 0;
    largest = std::max({largest, above, -below});
    smallest = std::min(smallest, std::max(above, -below));
    unequal = std::max(unequal, std::abs(above + below));
  }
  const auto require = [&](const std::string& what, bool holds) {
    parts.push_back({"whether " + what + " (1: yes)", {holds ? 1.0 : 0.0}});
  };
  require("every call of f changes at most one element of x", moved <= 1);
  require("f is called on both sides of x, for each element", both_sides);
  require(fmt::format("the largest step, {:.3g}, is small enough", largest), largest <= 2e-4);
  require(fmt::format("the smallest step, {:.3g}, is large enough", smallest), smallest >= 0.99e-7);
  require("both sides are equally far away", unequal <= 1e-3 * largest);
  parts.push_back({.name = "derivatives of exp(x0) sin(x1) + x0 x1 x2 + x2^3",
                   .numbers = answer.gradient(f, x),
                   .hint = "the steps are right, so look at the quotient: is every number a double?",
                   .tolerance = 1e-8});
  parts.push_back({.name = "calls of f for three elements", .numbers = {1.0 * double(calls.size())}, .at_most = true});
}

struct Flaw {
  double up = 1e-5, down = 1e-5;
  bool puts_back = true;
  double divisor = 2e-5;
};

std::vector<double> with_steps(const ScalarFunction& function, std::vector<double> x, const Flaw& flaw) {
  std::vector<double> gradient;
  for (double& element : x) {
    const double middle = element;
    element = middle + flaw.up;
    const double above = function(x);
    element = middle - flaw.down;
    const double below = function(x);
    if (flaw.puts_back) element = middle;
    gradient.push_back((above - below) / flaw.divisor);
  }
  return gradient;
}

std::vector<double> true_gradient(const ScalarFunction& function, const std::vector<double>& x) {
  with_steps(function, x, {});
  return by_calculus(x);
}

Mistake<Answer> mistake(const Flaw& flaw, std::string hint) {
  return {{[flaw](const ScalarFunction& function, std::vector<double> x) {
            return with_steps(function, std::move(x), flaw);
          }},
          std::move(hint)};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      6, "06_differences", "a gradient by differences",
      {.answer = {numeric_gradient},
       .truth = {true_gradient},
       .mistakes =
           {mistake({.puts_back = false}, "put x[i] back to what it was before you go on to the next element."),
            mistake({.up = 1e-8, .down = 0, .divisor = 1e-8},
                    "a difference of one side, (f(x + h) - f(x)) / h, has an error of the size of h. That of both "
                    "sides, (f(x + h) - f(x - h)) / 2h, has one of the size of h squared."),
            mistake({.up = 1e-2, .down = 1e-2, .divisor = 2e-2},
                    "the step is too large: the error of a central difference is of the size of h squared."),
            mistake({.up = 1e-10, .down = 1e-10, .divisor = 2e-10},
                    "the step is too small. Values of f have 16 digits; two that agree in almost all of them have a "
                    "difference of few. The error is of the size of 1e-16 / h."),
            mistake({.up = 1e-5, .down = 2e-5, .divisor = 3e-5},
                    "both sides must be equally far away: only then do the terms with h cancel."),
            mistake({.divisor = 1e-5}, "the two calls lie 2 h apart, so divide by 2 h.")},
       .run = run});
}

}  // namespace engram::exercises::check_06
