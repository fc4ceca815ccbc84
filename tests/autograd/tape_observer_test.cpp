#include "autograd/tape_observer.hpp"

#include <string>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tape_observer_test {
namespace {

/// Writes down what it is told.
struct Told final : TapeObserver {
  std::vector<std::string> lines;
  bool stops = false;

  void begun(const Tape&) override { lines.push_back("begun"); }
  void entered(const Tape&, int slot, const Tensor& value) override {
    lines.push_back(text("entered ", slot, " ", value.shape()));
  }
  void recorded(const Tape& tape, std::span<const Variable> inputs, std::span<const Tensor> outputs) override {
    lines.push_back(
        text("recorded ", tape.entry(tape.size() - 1).node->name(), " ", inputs.size(), " ", outputs.size()));
  }
  void turned(const Tape& tape, std::span<const int> losses) override {
    lines.push_back(text("turned ", losses.size()));
    for (const int loss : losses) CHECK(StepFixture::values(tape.slot_gradient(loss)) == std::vector{1.0});
    if (stops) throw Error("enough");
  }
  void runs(const Tape&, std::size_t operation) override { lines.push_back(text("runs ", operation)); }
  void arrives(const Tape& tape, int slot, Arrival how) override {
    const Tensor before = tape.slot_gradient(slot);
    lines.push_back(text(name_of(how), " ", slot, before ? text(" to ", StepFixture::values(before)[0]) : ""));
  }
  void ran(const Tape&, std::size_t operation) override { lines.push_back(text("ran ", operation)); }
};

TEST_CASE("tape observer: it is told of every operation and of every share of a gradient", "[autograd]") {
  StepFixture f;
  Parameter weight({2}, {Initializer::Kind::constant, 2});
  ParameterStore store;
  store.add("weight", weight);
  store.place(*f.backend, DType::f64, 1);
  Told told;
  f.step.observe(&told);
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {3, 4}));
  const Variable y = multiply(tape.parameter(weight), x);
  multiply(y, y);  // nothing uses it
  const Variable loss = total(pass_sum({y, x}));
  tape.backward({loss});
  CHECK(told.lines == std::vector<std::string>{"begun", "entered 0 [2]", "entered 1 [2]", "recorded multiply 2 1",
                                               "recorded multiply 2 1", "recorded combine 2 1", "recorded pass_sum 2 1",
                                               "recorded total 1 1", "turned 1",
                                               // total, then pass_sum, whose first input gets a copy
                                               "runs 4", "set 5", "ran 4", "runs 3", "set 2", "passed 0", "ran 3",
                                               // no gradient came to what is not used
                                               "ran 2", "ran 1",
                                               // of a parameter and of a leaf that has one already
                                               "runs 0", "add 1 to 0", "add 0 to 1", "ran 0"});
  f.step.observe(nullptr);
}

TEST_CASE("tape observer: tapes for inference and cotangents, and what it throws", "[autograd]") {
  StepFixture f;
  Told told;
  f.step.observe(&told);
  {
    Tape tape(f.step, Tape::Mode::inference);
    total(tape.leaf(f.tensor({1}, {1})));
  }
  CHECK(told.lines.empty());
  {
    Tape tape(f.step);
    const Variable y = combine({2}, {tape.leaf(f.tensor({1}, {1}))});
    tape.backward(y, f.tensor({1}, {5}));
  }
  CHECK(told.lines[3] == "turned 0");
  told.stops = true;
  {
    Tape tape(f.step);
    const Variable y = total(tape.leaf(f.tensor({1}, {1})));
    CHECK_THROWS_AS(tape.backward({y}), Error);
  }
  f.step.observe(nullptr);
  Tape silent(f.step);
  const Variable y = total(silent.leaf(f.tensor({1}, {1})));
  const std::size_t before = told.lines.size();
  silent.backward({y});
  CHECK(told.lines.size() == before);
}

}  // namespace
}  // namespace engram::harness::tape_observer_test
