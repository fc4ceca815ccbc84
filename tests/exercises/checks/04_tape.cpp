#include "tests/exercises/04_tape.hpp"

#include <cmath>

#include "tests/exercises/checks/all.hpp"

namespace engram::exercises::check_04 {
namespace {

struct Answer {
  std::function<std::unique_ptr<ScalarTape>()> make;
};

enum class Kind { leaf, add, multiply, exponential };
struct Entry {
  Kind kind;
  int a, b;
  double value;
};

double computed(const Entry& entry, const std::vector<double>& values) {
  const auto of = [&](int place) { return values[static_cast<std::size_t>(place)]; };
  switch (entry.kind) {
    case Kind::leaf:
      return entry.value;
    case Kind::add:
      return of(entry.a) + of(entry.b);
    case Kind::multiply:
      return of(entry.a) * of(entry.b);
    case Kind::exponential:
      return std::exp(of(entry.a));
  }
  return 0;
}

/// Keeps what was computed; what backward does is left to others.
class Recorder : public ScalarTape {
 public:
  int leaf(double value) override { return record({Kind::leaf, 0, 0, value}); }
  int add(int a, int b) override { return record({Kind::add, a, b, 0}); }
  int multiply(int a, int b) override { return record({Kind::multiply, a, b, 0}); }
  int exponential(int a) override { return record({Kind::exponential, a, a, 0}); }
  double value(int place) const override { return values_[static_cast<std::size_t>(place)]; }
  double gradient(int place) const override { return gradients_[static_cast<std::size_t>(place)]; }

 protected:
  std::vector<Entry> entries_;
  std::vector<double> values_, gradients_;

 private:
  int record(const Entry& entry) {
    entries_.push_back(entry);
    values_.push_back(computed(entry, values_));
    gradients_.push_back(0);
    return static_cast<int>(values_.size()) - 1;
  }
};

/// Changes each value a little, and computes everything behind it again.
class DifferenceTape final : public Recorder {
 public:
  void backward(int result) override {
    for (std::size_t place = 0; place < entries_.size(); ++place)
      gradients_[place] = (with(place, 1e-5, result) - with(place, -1e-5, result)) / 2e-5;
  }

 private:
  double with(std::size_t place, double change, int result) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      values.push_back(computed(entries_[i], values) + (i == place ? change : 0));
    return values[static_cast<std::size_t>(result)];
  }
};

enum class Flaw { sets, first_to_last, keeps_gradients, from_the_end, own_factor, exponent, twice, no_factor, power };

class FlawedTape final : public Recorder {
 public:
  explicit FlawedTape(Flaw flaw) : flaw_(flaw) {}
  void backward(int result) override {
    if (flaw_ != Flaw::keeps_gradients) gradients_.assign(entries_.size(), 0);
    const int last = static_cast<int>(entries_.size()) - 1;
    if (flaw_ == Flaw::from_the_end) result = last;
    gradients_[static_cast<std::size_t>(result)] = 1;
    for (int i = 0; i <= result; ++i) rule(flaw_ == Flaw::first_to_last ? i : result - i);
  }

 private:
  void rule(int place) {
    const Entry& entry = entries_[static_cast<std::size_t>(place)];
    const double dy = gradient(place);
    if (entry.kind == Kind::add) give(entry.a, dy), give(entry.b, dy);
    if (entry.kind == Kind::multiply) {
      const bool own = flaw_ == Flaw::own_factor;
      give(entry.a, value(own ? entry.a : entry.b) * dy);
      give(entry.b, value(own ? entry.b : entry.a) * dy);
    }
    if (entry.kind == Kind::exponential) give(entry.a, slope_of_exponential(value(entry.a), value(place)) * dy);
  }
  double slope_of_exponential(double a, double y) const {
    switch (flaw_) {
      case Flaw::exponent:
        return a;
      case Flaw::twice:
        return std::exp(y);
      case Flaw::no_factor:
        return 1;
      case Flaw::power:
        return a * std::exp(a - 1);
      default:
        return y;
    }
  }
  void give(int place, double number) {
    double& gradient = gradients_[static_cast<std::size_t>(place)];
    gradient = flaw_ == Flaw::sets ? number : gradient + number;
  }

  Flaw flaw_;
};

void run(const Answer& answer, std::vector<Part>& parts) {
  const auto tape = answer.make();
  const int x = tape->leaf(0.5), w = tape->leaf(-3), sum = tape->add(x, w), product = tape->multiply(x, w);
  const int power = tape->exponential(x);
  const auto values = [&](std::initializer_list<int> places) {
    std::vector<double> found;
    for (const int place : places) found.push_back(tape->value(place));
    return found;
  };
  const auto gradients = [&](std::initializer_list<int> places) {
    std::vector<double> found;
    for (const int place : places) found.push_back(tape->gradient(place));
    return found;
  };
  parts.push_back(
      {"places of two leaves, x + w, x w and exp(x)", {1.0 * x, 1.0 * w, 1.0 * sum, 1.0 * product, 1.0 * power}});
  parts.push_back(
      {"values of x, w, x + w, x w and exp(x), for x = 0.5 and w = -3", values({x, w, sum, product, power})});
  tape->backward(sum);
  parts.push_back({"gradients of x, w and x + w, the result being x + w", gradients({x, w, sum})});
  tape->backward(power);
  parts.push_back({"a second backward, from exp(x): gradients of x, w and exp(x)", gradients({x, w, power})});
  tape->backward(product);
  parts.push_back({"gradients of x and w, the result being x w", gradients({x, w})});

  const auto other = answer.make();
  const int u = other->leaf(0.8), square = other->multiply(u, u), fourth = other->multiply(square, square);
  const int all = other->add(other->exponential(square), other->add(fourth, u));
  other->backward(all);
  parts.push_back({"gradients of u and u u, the result being exp(u u) + (u u) (u u) + u",
                   {other->gradient(u), other->gradient(square)}});
}

Mistake<Answer> mistake(Flaw flaw, std::string hint) {
  return {{[flaw] { return std::make_unique<FlawedTape>(flaw); }}, std::move(hint)};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      4, "04_tape", "a tape of your own",
      {.answer = {make_tape},
       .truth = {[] { return std::make_unique<DifferenceTape>(); }},
       .mistakes =
           {mistake(
                Flaw::sets,
                "a value that is used twice gets a contribution from each use, and the gradient is their sum: rules "
                "must add (+=) to the gradients of their inputs, not set them (=)."),
            mistake(Flaw::first_to_last,
                    "the rules must run from the result back to the first value. In the order of the computation a "
                    "rule runs before the gradient of its output is known."),
            mistake(Flaw::keeps_gradients,
                    "gradients of the call before are still there: begin backward by setting all of them to 0."),
            mistake(Flaw::from_the_end,
                    "backward begins at `result`, whose gradient is 1. You begin at the last value of the tape."),
            mistake(Flaw::own_factor,
                    "of y = a b the derivative by a is b, the other factor: a gets b dy, and b gets a dy."),
            mistake(Flaw::exponent, "the derivative of exp(a) is exp(a), the output, not a."),
            mistake(Flaw::twice,
                    "the entry's value is exp(a) already, and that is the derivative. You took exp of it once more."),
            mistake(Flaw::no_factor,
                    "exp hands dy on unchanged. By the chain rule a gets the derivative times dy, and the derivative "
                    "of exp(a) is exp(a), the output."),
            mistake(Flaw::power,
                    "this is a exp(a - 1), the rule for powers of a. In exp(a) the exponent varies: its derivative is "
                    "exp(a), the output.")},
       .run = run});
}

}  // namespace engram::exercises::check_04
