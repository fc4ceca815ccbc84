/// The checks of the op table tried on operations that are wrong on purpose: a checker that was never seen to fail
/// checks nothing. The operation is y = 3x + w w, on host memory, with one fault at a time.

#include <string>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_checks.hpp"
#include "tests/harness/sanitizers.hpp"

namespace engram::harness::op_checks_test {
namespace {

enum class Fault {
  none,
  wrong_value,
  wrong_derivative,
  only_sets,          // ignores that a second use must add
  skips_an_element,   // of the output
  skips_in_gradient,  // an element
  reads_fresh_memory,
  writes_behind,
  changes_input,
  differs_each_time,
  needs_both,       // writes dw although w is a constant
  rounds_too_much,  // in f32
  accepts_everything
};

struct Combination final : Node {
  Tensor x, w;
  Fault fault;

  Combination(Tensor first, Tensor second, Fault which) : x(std::move(first)), w(std::move(second)), fault(which) {}
  std::string_view name() const override { return "combination"; }
  void backward(Step&, Backward& pass) override {
    dispatch_float(x.dtype(), "combination", [&]<class T>() {
      const T* dy = pass.output_grad().data<const T>();
      const Target targets[] = {pass.input_grad(0), pass.input_grad(1)};
      if (fault == Fault::needs_both && !targets[1]) throw Error("combination: no memory, got nothing");
      for (int input = 0; input < 2; ++input) {
        const Target& target = targets[input];
        if (!target) continue;
        T* dx = target.tensor.data<T>();
        const std::int64_t count = x.count() - (fault == Fault::skips_in_gradient ? 1 : 0);
        for (std::int64_t i = 0; i < count; ++i) {
          const T slope = input == 0 ? T(fault == Fault::wrong_derivative ? 3.001 : 3) : 2 * w.data<const T>()[i];
          const bool add = target.write == Write::add && fault != Fault::only_sets;
          dx[i] = slope * dy[i] + (add ? dx[i] : T(0));
        }
      }
    });
  }
};

int calls = 0;  // what differs_each_time differs by

Variable combination(const Variable& x, const Variable& w, Fault fault) {
  if (x.shape() != w.shape() && fault != Fault::accepts_everything)
    throw ShapeError(text("combination: x and w must have one shape, got ", x.shape(), " and ", w.shape()));
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  if (x.shape() != w.shape()) return x.tape().constant(y);
  dispatch_float(x.dtype(), "combination", [&]<class T>() {
    T* out = y.data<T>();
    const Workspace scratch = step.workspace(sizeof(T));
    const std::int64_t count = y.count() - (fault == Fault::skips_an_element ? 1 : 0);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = T(3) * x.value().data<T>()[i] + w.value().data<T>()[i] * w.value().data<T>()[i];
      if (fault == Fault::wrong_value) out[i] *= T(1 + 1e-9);
      if (fault == Fault::rounds_too_much && sizeof(T) == 4)
        out[i] = static_cast<T>(static_cast<float>(bf16(static_cast<float>(out[i]))));
      if (fault == Fault::reads_fresh_memory) out[i] += scratch.data<T>()[0];
      if (fault == Fault::differs_each_time) out[i] += T(++calls);
    }
    if (fault == Fault::writes_behind) out[count] = T(1);
    if (fault == Fault::changes_input) x.value().data<T>()[0] = T(0);
  });
  return x.tape().record(Combination(x.value(), w.value(), fault), {x, w}, y);
}

OpCase entry(Fault fault) {
  return {.name = "combination",
          .inputs = {{normal({5, 3}), uniform({5, 3}, 1, 2)}},
          .function = [fault](std::span<const Variable> x) { return combination(x[0], x[1], fault); },
          .reference =
              [](std::span<const Array64> x) {
                Array64 y = x[0];
                for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] = 3 * y.data[i] + x[1].data[i] * x[1].data[i];
                return y;
              },
          .errors = {{.inputs = {normal({2}), normal({3})}, .contains = {"combination", "[2]", "[3]"}}}};
}

Backend& cpu() { return *available_backends().front(); }

struct Found {
  bool reference, gradient, precision, add_mode, unwanted, memory, determinism, errors;
  explicit Found(Fault fault) {
    const OpCase op = entry(fault);
    const auto fails = [](auto check) {
      try {
        return !check().empty();
      } catch (const Error&) {
        return true;
      }
    };
    reference = fails([&] { return check_reference(cpu(), op, 0); });
    gradient = fails([&] { return check_gradient(cpu(), op, 0); });
    precision = fails([&] { return check_precision(cpu(), cpu(), op, 0); });
    add_mode = fails([&] { return check_add_mode(cpu(), op, 0, DType::f64); });
    unwanted = fails([&] { return check_unwanted(cpu(), op, 0); });
    memory = fails([&] { return check_memory(cpu(), op, 0, DType::f64); });
    determinism = fails([&] { return check_determinism(cpu(), op, 0, DType::f32); });
    errors = fails([&] { return check_errors(cpu(), op); });
  }
  bool any() const {
    return reference || gradient || precision || add_mode || unwanted || memory || determinism || errors;
  }
};

TEST_CASE("op checks: a right operation passes all of them", "[harness]") { CHECK_FALSE(Found(Fault::none).any()); }

TEST_CASE("op checks: every fault is found by its check", "[harness]") {
  CHECK(Found(Fault::wrong_value).reference);
  CHECK(Found(Fault::wrong_derivative).gradient);
  CHECK(Found(Fault::only_sets).add_mode);
  CHECK(Found(Fault::skips_an_element).memory);
  CHECK(Found(Fault::skips_in_gradient).memory);
  CHECK(Found(Fault::reads_fresh_memory).memory);
  CHECK(Found(Fault::changes_input).memory);
  CHECK(Found(Fault::differs_each_time).determinism);
  CHECK(Found(Fault::needs_both).unwanted);
  CHECK(Found(Fault::rounds_too_much).precision);
  CHECK(Found(Fault::accepts_everything).errors);
}

TEST_CASE("op checks: the report of a wrong derivative names the place", "[harness]") {
  GradcheckReport report;
  const Faults faults = check_gradient(cpu(), entry(Fault::wrong_derivative), 0, &report);
  REQUIRE(faults.size() == 1);
  CHECK(report.checked == 30);
  CHECK(report.input == 0);
  CHECK(report.analytic / report.numeric == Approx(3.001 / 3).epsilon(1e-8));
  CHECK(faults[0].find("at input 0 element") != std::string::npos);
}

TEST_CASE("op checks: a write behind a block is found", "[harness]") {
  // There the same fault ends the program at the write itself.
  if (address_sanitizer_watches()) return;
  const Faults faults = check_memory(cpu(), entry(Fault::writes_behind), 0, DType::f64);
  REQUIRE_FALSE(faults.empty());
  CHECK(faults[0] == "something was written behind a block of 120 bytes, at guard byte 0");
}

}  // namespace
}  // namespace engram::harness::op_checks_test
