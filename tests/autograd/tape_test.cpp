/// Recording and running backwards: values used several times, several losses, sharing, constants, errors.

#include "autograd/tape.hpp"

#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/scope.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tape_test {
namespace {

using Numbers = std::vector<double>;

TEST_CASE("tape: the gradient of a product", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable a = tape.leaf(f.tensor({2}, {2, 3}));
  const Variable b = tape.leaf(f.tensor({2}, {5, 7}));
  const Variable loss = total(multiply(a, b));
  CHECK(f.values(loss.value()) == Numbers{31});
  CHECK(tape.size() == 2);
  tape.backward({loss});
  CHECK(f.values(tape.gradient(a)) == Numbers{5, 7});
  CHECK(f.values(tape.gradient(b)) == Numbers{2, 3});
  CHECK(tape.size() == 0);
}

TEST_CASE("tape: every use of a value adds to its gradient", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {2, 3}));
  const Variable y = combine({4, 5}, {x, x});        // 9 x, twice in one operation
  const Variable z = multiply(x, y);                 // 9 x^2
  const Variable w = combine({1, 1, 1}, {z, y, x});  // 9 x^2 + 10 x
  tape.backward(w, f.tensor({2}, {1, 10}));
  CHECK(f.values(tape.gradient(x)) == Numbers{18 * 2 + 10, 10 * (18 * 3 + 10)});
}

TEST_CASE("tape: the first target of a value says set, later ones add, a parameter's always add", "[autograd]") {
  StepFixture f;
  ParameterStore store;
  Parameter weight({2}, {Initializer::Kind::constant, 3});
  store.add("weight", weight);
  store.place(*f.backend, DType::f64, 1);
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {1, 2}));
  const Variable w = tape.parameter(weight);
  const auto writes = [](std::vector<Write>& list) {
    return [&list](Step&, Backward& pass) { list.push_back(pass.input_grad(0).write); };
  };
  std::vector<Write> of_leaf, of_parameter;
  // A probe asks for the target and then hands its gradient on; zero cotangents keep the numbers out of it.
  const Variable sum = combine({1, 1, 1, 1}, {probe(x, writes(of_leaf)), probe(x, writes(of_leaf)),
                                              probe(w, writes(of_parameter)), probe(w, writes(of_parameter))});
  tape.backward(sum, f.tensor({2}, {0, 0}));
  CHECK(of_leaf == std::vector<Write>{Write::set, Write::add});
  CHECK(of_parameter == std::vector<Write>{Write::add, Write::add});
}

/// a + 10 b + 100 c. Its backward pass has all targets before it writes the first, as kernels with several gradients.
struct AtOnce final : Node {
  std::string_view name() const override { return "at_once"; }
  void backward(Step& step, Backward& pass) override {
    const Target targets[] = {pass.separate_grad(0), pass.separate_grad(1), pass.separate_grad(2)};
    double factor = 1;
    for (const Target& target : targets) {
      if (target) kernels::accumulate(step, pass.output_grad(), factor, target);
      factor *= 10;
    }
  }
};

TEST_CASE("tape: separate targets of one value are added up", "[autograd]") {
  StepFixture f;
  ParameterStore store;
  Parameter weight({1}, {Initializer::Kind::constant, 3});
  store.add("weight", weight);
  store.place(*f.backend, DType::f64, 1);
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({1}, {1})), y = tape.leaf(f.tensor({1}, {2}));
  const Variable fixed = tape.constant(f.tensor({1}, {4}));
  const auto at_once = [&](const Variable& a, const Variable& b, const Variable& c) {
    return tape.record(AtOnce{}, {a, b, c}, f.tensor({1}, {0}));
  };
  const Variable twice = at_once(x, y, x), all = at_once(x, x, x), beside = at_once(fixed, y, fixed);
  const Variable parameter = at_once(tape.parameter(weight), y, tape.parameter(weight));
  tape.backward({twice, all, beside, parameter});
  CHECK(f.values(tape.gradient(x)) == Numbers{101 + 111});
  CHECK(f.values(tape.gradient(y)) == Numbers{30});
  CHECK(f.values(weight.gradient()) == Numbers{101});
}

TEST_CASE("tape: rows of a parameter share its memory and add to their part of its gradient", "[autograd]") {
  StepFixture f;
  ParameterStore store;
  Parameter weight({3, 2}, {Initializer::Kind::constant, 3});
  store.add("weight", weight);
  store.place(*f.backend, DType::f64, 1);
  for (const bool inference : {true, false}) {
    Tape tape(f.step, inference ? Tape::Mode::inference : Tape::Mode::training);
    const Variable rows = tape.parameter(weight, 1, 3), last = tape.parameter(weight, 2, 3);
    CHECK(rows.value().raw() == weight.value().data<double>() + 2);
    CHECK(rows.shape() == Shape{2, 2});
    CHECK_THROWS_AS(tape.parameter(weight, 1, 4), ShapeError);
    CHECK(rows.requires_grad() == !inference);
    if (inference) continue;
    const Variable one = total(multiply(rows, rows));  // 2 w
    const Variable other = total(multiply(last, tape.constant(f.tensor({1, 2}, {5, 7}))));
    tape.backward({one, other});
    CHECK(f.values(weight.gradient()) == Numbers{0, 0, 6, 6, 11, 13});
  }
}

TEST_CASE("tape: pass_through never lets two gradients share memory", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable a = tape.leaf(f.tensor({2}, {1, 2}));
  const Variable b = tape.leaf(f.tensor({2}, {3, 4}));
  const Variable c = tape.leaf(f.tensor({2}, {5, 6}));
  // a gets a further share after the gradient was handed on; b and c must not see it.
  const Variable doubled = combine({2}, {a});
  const Variable sum = pass_sum({a, b, c});
  tape.backward(combine({1, 1}, {sum, doubled}), f.tensor({2}, {1, 10}));
  CHECK(f.values(tape.gradient(a)) == Numbers{3, 30});
  CHECK(f.values(tape.gradient(b)) == Numbers{1, 10});
  CHECK(f.values(tape.gradient(c)) == Numbers{1, 10});
  CHECK(tape.gradient(b).raw() != tape.gradient(c).raw());
}

TEST_CASE("tape: pass_through of one value twice, and beside a constant", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({1}, {1}));
  const Variable fixed = tape.constant(f.tensor({1}, {1}));
  tape.backward(combine({1, 1}, {pass_sum({x, x}), pass_sum({x, fixed})}), f.tensor({1}, {1}));
  CHECK(f.values(tape.gradient(x)) == Numbers{3});
  CHECK_FALSE(tape.has_gradient(fixed));
}

TEST_CASE("tape: the caller's cotangent is not changed", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {1, 2}));
  const Variable y = pass_sum({x, x});
  const Tensor cotangent = f.tensor({2}, {1, 10});
  tape.backward(y, cotangent);
  CHECK(f.values(tape.gradient(x)) == Numbers{2, 20});
  CHECK(f.values(cotangent) == Numbers{1, 10});

  Tape other(f.step);
  const Variable leaf = other.leaf(f.tensor({2}, {1, 2}));
  const Variable once = pass_sum({leaf, other.constant(f.tensor({2}, {0, 0}))});
  other.backward(once, cotangent);
  CHECK(other.gradient(leaf).raw() != cotangent.raw());
}

TEST_CASE("tape: several losses are summed, also when one is part of another", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {2, 3}));
  const Variable first = total(multiply(x, x));
  const Variable second = combine({0.5}, {first});
  const Variable third = total(x);
  tape.backward({first, second, third});
  CHECK(f.values(tape.gradient(x)) == Numbers{1.5 * 4 + 1, 1.5 * 6 + 1});
}

TEST_CASE("tape: a node sees whether its output is a loss", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({1}, {2}));
  std::vector<bool> roots;
  const auto note = [&roots](Step&, Backward& pass) { roots.push_back(pass.output_is_root()); };
  const Variable inner = probe(x, note);
  tape.backward({probe(inner, note)});
  CHECK(roots == std::vector<bool>{true, false});
}

TEST_CASE("tape: outputs that nobody used have no gradient", "[autograd]") {
  StepFixture f;
  for (const int used : {0, 1}) {
    Tape tape(f.step);
    const Variable x = tape.leaf(f.tensor({2}, {1, 1}));
    const auto outputs = two_and_three(x);
    tape.backward({total(outputs[static_cast<std::size_t>(used)])});
    CHECK(f.values(tape.gradient(x)) == Numbers(2, used + 2.0));
  }
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {1, 1}));
  const Variable unused = combine({7}, {x});
  tape.backward({total(combine({3}, {x}))});
  CHECK(f.values(tape.gradient(x)) == Numbers{3, 3});
}

TEST_CASE("tape: constants and inference record nothing", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable fixed = tape.constant(f.tensor({1}, {2}));
  CHECK_FALSE(multiply(fixed, fixed).requires_grad());
  CHECK(tape.size() == 0);

  Parameter weight({1}, {Initializer::Kind::constant, 3});
  ParameterStore store;
  store.add("weight", weight);
  store.place(*f.backend, DType::f64, 1);
  Tape inference(f.step, Tape::Mode::inference);
  CHECK_FALSE(inference.training());
  const Variable y = multiply(inference.parameter(weight), inference.leaf(f.tensor({1}, {2})));
  CHECK(f.values(y.value()) == Numbers{6});
  CHECK(inference.size() == 0);
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("tape: scopes are kept when asked for", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({1}, {2}));
  const Variable without = combine({1}, {x});
  tape.keep_scopes(true);
  const Scope layer("layers.0");
  const Variable with = combine({1}, {without});
  CHECK(tape.entry(0).scope.empty());
  CHECK(tape.entry(1).scope == "layers.0");
  CHECK(tape.entry(1).node->name() == "combine");
}

TEST_CASE("tape: mistakes are errors", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  Tape other(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {1, 2}));
  const Variable elsewhere = other.leaf(f.tensor({2}, {1, 2}));
  CHECK_THROWS_WITH(multiply(x, elsewhere), "tape: all inputs of an operation must be on one tape");
  const Variable y = multiply(x, x);
  const Variable loss = total(y);
  CHECK_THROWS_WITH(tape.backward({y}), "backward: a loss must be one number, got [2]");
  CHECK_THROWS_WITH(tape.backward(y, f.tensor({1}, {1})), "backward: the cotangent must be [2], got [1]");
  CHECK_THROWS_WITH(tape.backward({tape.constant(f.tensor({1}, {1}))}),
                    "backward: the loss does not depend on anything that needs a gradient");
  CHECK_THROWS_WITH(tape.gradient(x), "gradient: none reached this variable of shape [2]");
  CHECK_THROWS_WITH(tape.backward({loss, loss}), "backward: a loss was given twice");
}

}  // namespace
}  // namespace engram::harness::tape_test
