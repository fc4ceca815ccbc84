/// What the tape keeps, and when it lets go.

#include "core/arena.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tape_memory_test {
namespace {

constexpr std::int64_t kElements = 64;  // 512 bytes of f64: two units of the arena
constexpr std::size_t kBytes = kElements * sizeof(double);

TEST_CASE("tape: operations are freed while backward runs", "[autograd]") {
  StepFixture f;
  Arena arena(f.memory);
  {
    Step step(*f.backend, arena, 1);
    Tape tape(step);
    const auto ones = [&step] {
      Tensor x = step.empty({kElements}, DType::f64);
      std::fill_n(x.data<double>(), kElements, 1.0);
      return x;
    };
    constexpr int kLength = 20;
    std::vector<std::size_t> in_use;
    {
      Variable y = tape.leaf(ones());
      const Variable factor = tape.constant(ones());
      for (int i = 0; i < kLength; ++i) {
        y = multiply(y, factor);
        y = probe(y, [&](Step&, Backward&) { in_use.push_back(arena.bytes_in_use()); });
      }
      y = total(y);
      tape.backward({y});
    }
    REQUIRE(in_use.size() == kLength);
    // Every operation that ran gave back what it alone kept: one tensor. Gradients take no more than they gave.
    for (int i = 1; i < kLength; ++i)
      CHECK(in_use[static_cast<std::size_t>(i)] == in_use[static_cast<std::size_t>(i - 1)] - kBytes);
  }
  CHECK(arena.bytes_in_use() == 0);
  CHECK_NOTHROW(arena.end_step());
}

TEST_CASE("tape: a chain of 10,000 operations", "[autograd]") {
  StepFixture f;
  Arena arena(f.memory);
  Step step(*f.backend, arena, 1);
  Tape tape(step);
  Tensor two = step.empty({1}, DType::f64);
  two.data<double>()[0] = 2;
  const Variable x = tape.leaf(two);
  Variable y = x;
  for (int i = 0; i < 10000; ++i) y = combine({i % 2 == 0 ? 2.0 : 0.5}, {y});
  CHECK(tape.size() == 10000);
  CHECK(f.values(y.value())[0] == 2);
  tape.backward({y});
  CHECK(f.values(tape.gradient(x))[0] == 1);
  CHECK(tape.size() == 0);
}

TEST_CASE("tape: a node that nothing depends on is freed, and so is a tape that never ran", "[autograd]") {
  StepFixture f;
  const std::size_t before = f.memory.bytes_in_use();
  {
    Tape tape(f.step);
    const Variable x = tape.leaf(f.tensor({2}, {1, 2}));
    const Variable y = multiply(x, x);
  }
  CHECK(f.memory.bytes_in_use() == before);
  CHECK(f.memory.faults().empty());
}

TEST_CASE("tape: equal steps have equal addresses", "[autograd]") {
  StepFixture f;
  Arena arena(f.memory);
  const auto run = [&] {
    Step step(*f.backend, arena, 1);
    std::vector<const void*> addresses;
    {
      Tape tape(step);
      const auto leaf = [&](double value) {
        Tensor x = step.empty({kElements}, DType::f64);
        std::fill_n(x.data<double>(), kElements, value);
        addresses.push_back(x.raw());
        return tape.leaf(x);
      };
      const Variable a = leaf(1), b = leaf(2);
      const Variable y = multiply(multiply(a, b), combine({1, 2}, {a, b}));
      addresses.push_back(y.value().raw());
      tape.backward({total(y)});
      addresses.push_back(tape.gradient(a).raw());
      addresses.push_back(tape.gradient(b).raw());
    }
    arena.end_step();
    return addresses;
  };
  const std::vector<const void*> first = run();
  CHECK(run() == first);
  CHECK(run() == first);
}

}  // namespace
}  // namespace engram::harness::tape_memory_test
