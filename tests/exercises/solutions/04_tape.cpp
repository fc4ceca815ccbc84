#include "tests/exercises/04_tape.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace engram::exercises {
namespace {

class Tape final : public ScalarTape {
 public:
  int leaf(double value) override {
    return record(value, [](double) {});
  }
  int add(int a, int b) override {
    return record(value(a) + value(b), [this, a, b](double dy) {
      at(a).gradient += dy;
      at(b).gradient += dy;
    });
  }
  int multiply(int a, int b) override {
    return record(value(a) * value(b), [this, a, b](double dy) {
      at(a).gradient += value(b) * dy;
      at(b).gradient += value(a) * dy;
    });
  }
  int exponential(int a) override {
    const double y = std::exp(value(a));
    return record(y, [this, a, y](double dy) { at(a).gradient += y * dy; });
  }

  double value(int place) const override { return entries_[static_cast<std::size_t>(place)].value; }

  void backward(int result) override {
    for (Entry& entry : entries_) entry.gradient = 0;
    at(result).gradient = 1;
    for (int place = result; place >= 0; --place) at(place).rule(at(place).gradient);
  }
  double gradient(int place) const override { return entries_[static_cast<std::size_t>(place)].gradient; }

 private:
  struct Entry {
    double value = 0;
    std::function<void(double dy)> rule;  // adds to the gradients of the inputs
    double gradient = 0;
  };

  int record(double value, std::function<void(double)> rule) {
    entries_.push_back({value, std::move(rule)});
    return static_cast<int>(entries_.size()) - 1;
  }
  Entry& at(int place) { return entries_[static_cast<std::size_t>(place)]; }

  std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<ScalarTape> make_tape() { return std::make_unique<Tape>(); }

}  // namespace engram::exercises
