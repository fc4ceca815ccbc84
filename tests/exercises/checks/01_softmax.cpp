#include "tests/exercises/01_softmax.hpp"

#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_01 {
namespace {

using Row = std::span<const double>;
struct Answer {
  std::function<void(Row y, Row dy, std::span<double> dx)> backward;
};

std::vector<double> softmax(const std::vector<double>& x) {
  std::vector<double> y(x.size());
  double sum = 0;
  for (const double number : x) sum += std::exp(number);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::exp(x[i]) / sum;
  return y;
}

void by_differences(Row y, Row dy, std::span<double> dx) {
  std::vector<double> x;  // one of the rows whose softmax is y
  for (const double number : y) x.push_back(std::log(number));
  const std::vector<double> found = slopes([&](const std::vector<double>& at) { return dot(dy, softmax(at)); }, x);
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = found[i];
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    const char* name;
    std::vector<double> x, dy;
  };
  const Trial trials[] = {{"dx, for x = 0 1 2 and dy = 1 0 0", {0, 1, 2}, {1, 0, 0}},
                          {"dx, for x = 0 1 2 and dy = 1 1 1, whose sum cannot change", {0, 1, 2}, {1, 1, 1}},
                          {"dx, for seven numbers", some_numbers(7, 1), some_numbers(7, 2)},
                          {"dx, for a row of one number, whose softmax is always 1", {3}, {2}}};
  for (const Trial& trial : trials) {
    std::vector<double> dx(trial.x.size(), kUnwritten);
    answer.backward(softmax(trial.x), trial.dy, dx);
    parts.push_back({trial.name, dx});
  }
}

/// An answer whose element i is `rule`(y[i], dy[i], the sum of y dy, the sum of dy).
Answer of_rule(const std::function<double(double, double, double, double)>& rule) {
  return {[rule](Row y, Row dy, std::span<double> dx) {
    double plain = 0;
    for (const double number : dy) plain += number;
    for (std::size_t i = 0; i < y.size(); ++i) dx[i] = rule(y[i], dy[i], dot(y, dy), plain);
  }};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      1, "01_softmax", "the derivative of softmax",
      {.answer = {softmax_backward},
       .truth = {by_differences},
       .mistakes =
           {{of_rule([](double y, double dy, double, double) { return y * (1 - y) * dy; }),
             "this is y (1 - y) dy, the derivative of each output by its own input. But each input moves every output: "
             "the sum is larger, so all others get less. The terms -y[i] y[j] dy[j] are missing."},
            {of_rule([](double y, double dy, double, double) { return y * dy; }),
             "this is y dy. The sum in the denominator depends on x too: a term with the sum over j of y[j] dy[j] is "
             "missing."},
            {of_rule([](double, double dy, double mean, double) { return dy - mean; }),
             "the bracket (dy[i] - sum) is right; the factor y[i] in front of it is missing."},
            {of_rule([](double y, double dy, double, double sum) { return y * (dy - sum); }),
             "you subtract the plain sum of dy. What is subtracted is the sum of y[j] dy[j], a mean with weights y."},
            {of_rule([](double y, double dy, double mean, double) { return y * (dy + mean); }),
             "the sum of y[j] dy[j] must be subtracted, not added."}},
       .run = run});
}

}  // namespace engram::exercises::check_01
