#include "tests/exercises/09_span.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_09 {
namespace {

using Row = std::span<const double>;
struct Answer {
  std::function<void(Row scores, double z, double ramp, std::span<double> weights)> weights;
  std::function<double(Row scores, double z, double ramp, Row dweights)> gradient;
};

double raw_at(double z, double ramp, std::size_t x) { return (ramp + z - static_cast<double>(x)) / ramp; }

struct Rule {
  bool normalised = true, clamped = true, in_exponent = false;
  double shift = 0;  ///< added to x
};

std::vector<double> weights_by(const Rule& rule, Row scores, double z, double ramp) {
  std::vector<double> masks;
  for (std::size_t x = 0; x < scores.size(); ++x) {
    const double raw = raw_at(z - rule.shift, ramp, x);
    masks.push_back(rule.clamped ? std::clamp(raw, 0.0, 1.0) : std::max(raw, 0.0));
  }
  double sum = 0;
  std::vector<double> weights;
  for (std::size_t x = 0; x < scores.size(); ++x) {
    const double unmasked = std::exp(rule.in_exponent ? masks[x] * scores[x] : scores[x]);
    weights.push_back(rule.in_exponent ? unmasked : masks[x] * unmasked);
    sum += rule.normalised ? weights[x] : unmasked;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double by_differences(Row scores, double z, double ramp, Row dweights) {
  return slopes([&](const std::vector<double>& at) { return dot(dweights, weights_by({}, scores, at[0], ramp)); },
                std::vector{z})[0];
}

struct Flaw {
  bool divides = true, ramp_only = true, minus_mean = true, masked = false, turned = false;
};

double flawed_gradient(const Flaw& flaw, Row scores, double z, double ramp, Row dweights) {
  const std::vector<double> a = weights_by({}, scores, z, ramp);
  double sum = 0, dz = 0;
  for (std::size_t x = 0; x < scores.size(); ++x) sum += std::clamp(raw_at(z, ramp, x), 0.0, 1.0) * std::exp(scores[x]);
  for (std::size_t x = 0; x < scores.size(); ++x) {
    const double raw = raw_at(z, ramp, x);
    if (flaw.ramp_only && (raw <= 0 || raw >= 1)) continue;
    const double e = flaw.masked ? a[x] : std::exp(scores[x]) / sum;
    dz += e * (dweights[x] - (flaw.minus_mean ? dot(a, dweights) : 0)) / (flaw.divides ? ramp : 1);
  }
  return flaw.turned ? -dz : dz;
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    double z, ramp;
  };
  const Trial trials[] = {{2.5, 4}, {0.3, 2}, {4.6, 1.5}};
  const std::vector<double> scores = some_numbers(10, 14), dweights = some_numbers(10, 15);
  for (const Trial& trial : trials) {
    std::vector<double> weights(scores.size(), kUnwritten);
    answer.weights(scores, trial.z, trial.ramp, weights);
    parts.push_back({fmt::format("weights of ten positions, for z = {} and ramp = {}", trial.z, trial.ramp), weights});
  }
  for (const Trial& trial : trials)
    parts.push_back({fmt::format("dz, for z = {} and ramp = {}", trial.z, trial.ramp),
                     {answer.gradient(scores, trial.z, trial.ramp, dweights)}});
}

Answer with(const Rule& rule, const Flaw& flaw) {
  return {[rule](Row scores, double z, double ramp, std::span<double> weights) {
            std::ranges::copy(weights_by(rule, scores, z, ramp), weights.begin());
          },
          [flaw](Row scores, double z, double ramp, Row dweights) {
            return flawed_gradient(flaw, scores, z, ramp, dweights);
          }};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      9, "09_span", "a mask that moves",
      {.answer = {span_weights, span_gradient},
       .truth = {[](Row scores, double z, double ramp, std::span<double> weights) {
                   std::ranges::copy(weights_by({}, scores, z, ramp), weights.begin());
                 },
                 by_differences},
       .mistakes =
           {{with({.normalised = false}, {}),
             "you divide by the sum of exp(scores) without the mask. The weights must add up to 1: the mask stands in "
             "the sum too."},
            {with({.in_exponent = true}, {}),
             "the mask is inside of the exponent: exp(m s) is 1 where m is 0, and these positions keep a weight. The "
             "mask stands in front: m exp(s)."},
            {with({.clamped = false}, {}), "the mask must not be larger than 1: near positions all have m = 1."},
            {with({.shift = 1}, {}), "x counts from 0: the previous position has x = 0, and scores[x] belongs to x."},
            {with({}, {.divides = false}), "m(x) has the slope 1 / ramp in z. That factor is missing."},
            {with({}, {.ramp_only = false}),
             "z moves the mask only on its ramp. Where m is cut off at 0 or at 1 its derivative by z is 0: leave these "
             "positions out."},
            {with({}, {.minus_mean = false}),
             "the sum in the denominator has the mask too, so it moves with z: subtract the mean of dweights, with the "
             "weights."},
            {with({}, {.masked = true}),
             "you have the weights a = m e where the derivative by m has e = exp(score) / sum, without the factor m."},
            {with({}, {.turned = true}), "a larger z makes the mask larger. The sign of dz is turned round."}},
       .run = run});
}

}  // namespace engram::exercises::check_09
