#include "autograd/tape_listing.hpp"

#include "autograd/parameter_store.hpp"
#include "core/scope.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tape_listing_test {
namespace {

/// total(w * (w * x)), recorded under scopes.
struct Recorded {
  StepFixture f;
  Parameter weight{{2, 3}, {Initializer::Kind::constant, 2}};
  ParameterStore store;
  Tape tape{f.step};

  explicit Recorded(bool scopes) {
    store.add("layer.weight", weight);
    store.place(*f.backend, DType::f64, 1);
    tape.keep_scopes(scopes);
    const Scope layer("layer");
    const Variable x = tape.constant(f.tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
    Variable y;
    {
      const Scope inner("inner");
      y = multiply(tape.parameter(weight), x);
    }
    const Variable loss = total(multiply(tape.parameter(weight), y));
  }
};

TEST_CASE("tape listing: a table with scopes, shapes, bytes and parameters", "[autograd]") {
  Recorded recorded(true);
  CHECK(tape_table(recorded.tape) ==
        "#  op        scope        inputs         outputs  keeps  parameters\n"
        "0  multiply  layer/inner  [2, 3] -       [2, 3]    48 B  layer.weight\n"
        "1  multiply  layer        [2, 3] [2, 3]  [2, 3]    48 B  layer.weight\n"
        "2  total     layer        [2, 3]         [1]        0 B\n"
        "3 operations keep 96 B (shared memory once, parameters not counted)\n");
}

TEST_CASE("tape listing: a column of nothing is left out", "[autograd]") {
  Recorded recorded(false);
  CHECK(tape_table(recorded.tape)
            .starts_with("#  op        inputs         outputs  keeps  parameters\n"
                         "0  multiply  [2, 3] -       [2, 3]    48 B  layer.weight\n"));
}

TEST_CASE("tape listing: shared memory is counted once, also when it overlaps in part", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Tensor whole = f.tensor({4, 2}, std::vector<double>(8, 1.0));
  const Variable a = tape.leaf(whole.rows(0, 2));
  const Variable b = tape.leaf(whole.rows(1, 3));
  const Variable square = multiply(a, a);
  CHECK(bytes_kept(tape) == 32);
  const Variable product = multiply(a, b);
  CHECK(bytes_kept(tape) == 48);
  tape.backward({total(product)});
  CHECK(bytes_kept(tape) == 0);
}

TEST_CASE("tape listing: an empty tape", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  CHECK(tape_table(tape) == "0 operations keep 0 B (shared memory once, parameters not counted)\n");
}

}  // namespace
}  // namespace engram::harness::tape_listing_test
