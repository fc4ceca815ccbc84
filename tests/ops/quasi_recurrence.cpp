#include "autograd/functions/quasi_recurrence.hpp"

#include <omp.h>

#include <cmath>
#include <vector>

#include "autograd/functions/scale.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/recurrence.hpp"

namespace engram::harness::quasi_recurrence_test {
namespace {

/// Arguments: inputs, preceding, cells.
std::vector<Variable> pooled(std::span<const Variable> x) {
  const Recurrence result = quasi_recurrence(x[0], x[2] ? x[2].value() : Tensor(), x[1].value());
  return {result.outputs, x[0].tape().constant(result.cells)};
}

Input cells(Shape shape) { return uniform(shape, -1, 1).constant(); }

/// Sequences that begin at the first, second, last and other steps, and one that goes on.
Input six_streams() {
  return integers({6, 4}, {0, 1, 2, 3, 9, 0, 1, 2, 9, 10, 11, 0, 0, 1, 0, 1, 30, 31, 32, 33, 1, 2, 0, 1});
}

OpCase table_row() {
  OpCase op{.name = "quasi_recurrence",
            .inputs =
                {// The first steps of all streams, without cells before them and with none of them given.
                 {normal({2, 5, 9}), integers({2, 5}, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4}), absent()},
                 {normal({1, 1, 3}), integers({1, 1}, {0}), cells({1, 0, 1})},
                 {normal({1, 1, 3}), integers({1, 1}, {7}), cells({1, 1, 1})},
                 {normal({6, 4, 15}), six_streams(), cells({6, 1, 5})},
                 // More rows than are read; none although the counts promise one; units beyond one vector and
                 // beyond one item, also by one.
                 {normal({6, 4, 51}), six_streams(), cells({6, 3, 17})},
                 {normal({6, 4, 48}), six_streams(), cells({6, 0, 16})},
                 {normal({6, 4, 195}), six_streams(), cells({6, 1, 65})},
                 {normal({6, 4, 603}), six_streams(), cells({6, 1, 201})}},
            .function = Function([](std::span<const Variable> x) { return pooled(x); }),
            .reference = [](std::span<const Array64> x) {
              reference::Lstm result = reference::fo_pooling(x[0], {.hidden = {}, .cells = x[2], .preceding = x[1]});
              return std::vector<Array64>{std::move(result.hidden), std::move(result.cells)};
            }};
  const Input inputs = normal({2, 4, 6}), counts = index({2, 4}, 2);
  op.errors = {
      {.inputs = {normal({4, 6}), counts, absent()}, .contains = {"[B, M, 3 k]", "[4, 6]"}},
      {.inputs = {normal({2, 4, 8}), counts, absent()}, .contains = {"[B, M, 3 k]", "[2, 4, 8]"}},
      {.inputs = {normal({2, 0, 6}), counts, absent()}, .contains = {"at least 1", "[2, 0, 6]"}},
      {.inputs = {index({2, 4, 6}, 2), counts, absent()}, .contains = {"inputs must be f32 or f64", "i32"}},
      {.inputs = {inputs, index({2, 3}, 2), absent()}, .contains = {"preceding", "[2, 4]", "[2, 3]"}},
      {.inputs = {inputs, cells({2, 4}), absent()}, .contains = {"preceding", "i32", "f32"}},
      {.inputs = {inputs, counts, cells({1, 1, 2})}, .contains = {"cells", "B = 2", "k = 2", "[1, 1, 2]"}},
      {.inputs = {inputs, counts, cells({2, 1, 3})}, .contains = {"cells", "[2, 1, 3]"}},
      {.inputs = {inputs, counts, index({2, 1, 2}, 2)}, .contains = {"cells", "f32", "i32"}},
  };
  return op;
}

const OpCases cases{table_row()};

struct PoolFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Tensor tensor(const Input& input, DType dtype = DType::f64) {
    return to_device(backend, memory, Array64{{input.shape.count()}, input.values}, input, dtype).view(input.shape);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

TEST_CASE_METHOD(PoolFixture, "quasi_recurrence: worked example of one unit", "[worked]") {
  // Pre-activations of 0: z = 0, f = o = 1/2. A cell of 8 is halved at every step; where a text begins it is 0.
  const Tensor start = tensor(values({1, 1, 1}, {8})), before = tensor(integers({1, 4}, {5, 6, 7, 0}));
  const Variable zeros = tape.leaf(tensor(values({1, 4, 3}, std::vector<double>(12, 0))));
  const Recurrence made = quasi_recurrence(zeros, start, before);
  CHECK(host(made.cells) == std::vector<double>{4, 2, 1, 0});
  CHECK(host(made.outputs.value()) == std::vector<double>{2, 1, 0.5, 0});
  // dh_3 = 1: do = c / 4 = 1/4, dc = 1/2; df = dc (2 - 0) / 4 = 1/4, dz = dc / 2; steps 1 and 2 get dc / 2 each time.
  tape.backward(made.outputs, tensor(values({1, 4, 1}, {0, 0, 1, 0})));
  CHECK(host(tape.gradient(zeros)) == std::vector<double>{0.0625, 0.25, 0, 0.125, 0.25, 0, 0.25, 0.25, 0.25, 0, 0, 0});
}

TEST_CASE_METHOD(PoolFixture, "quasi_recurrence: inputs that others hold are not overwritten", "[ops]") {
  const Tensor before = tensor(integers({1, 2}, {0, 1}));
  const Variable held = tape.leaf(tensor(values({1, 2, 3}, {0.3, -1, 2, 0.5, 1, -2})));
  const std::vector<double> whole = host(held.value());
  const Recurrence copied = quasi_recurrence(held, {}, before);
  CHECK(host(held.value()) == whole);
  const Recurrence consumed = quasi_recurrence(scale(held, 1), {}, before);
  CHECK(host(copied.outputs.value()) == host(consumed.outputs.value()));
}

TEST_CASE_METHOD(PoolFixture, "quasi_recurrence: a text that begins has forgotten what came before, whatever it was",
                 "[ops]") {
  const double nan = std::nan("");
  const Tensor start = tensor(values({1, 1, 1}, {nan})), before = tensor(integers({1, 3}, {4, 0, 1}));
  const Variable x = tape.leaf(tensor(values({1, 3, 3}, {nan, nan, nan, 1, 2, 3, 1, 2, 3})));
  const Recurrence made = quasi_recurrence(x, start, before);
  const std::vector<double> alone = host(
      quasi_recurrence(tape.leaf(tensor(values({1, 2, 3}, {1, 2, 3, 1, 2, 3}))), {}, tensor(integers({1, 2}, {0, 1})))
          .outputs.value());
  const std::vector<double> got = host(made.outputs.value());
  CHECK(std::isnan(got[0]));
  CHECK(got[1] == alone[0]);
  CHECK(got[2] == alone[1]);
  tape.backward(made.outputs, tensor(values({1, 3, 1}, {0, 1, 1})));
  const std::vector<double> gradient = host(tape.gradient(x));
  for (std::size_t i = 3; i < 9; ++i) CHECK(std::isfinite(gradient[i]));
}

TEST_CASE("quasi_recurrence: the same bits for any number of threads", "[ops]") {
  Backend& backend = *available_backends().front();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  const int threads = omp_get_max_threads();
  std::vector<double> wave(static_cast<std::size_t>(7 * 5 * 3 * 150));
  for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = std::sin(1.7 * static_cast<double>(i));
  const Input input = values({7, 5, 450}, wave);
  const Tensor x = to_device(backend, memory, Array64{{7 * 5 * 450}, wave}, input, DType::f32).view({7, 5, 450});
  const Input zeros = integers({7, 5}, std::vector<double>(35, 9));
  const Tensor before = to_device(backend, memory, Array64{{35}, zeros.values}, zeros, DType::i32).view({7, 5});
  std::vector<std::vector<double>> found;
  for (const int count : {1, 2, 8}) {
    omp_set_num_threads(count);
    Tape tape(step);
    const Variable inputs = tape.leaf(x);
    const Recurrence made = quasi_recurrence(inputs, {}, before);
    tape.backward(made.outputs, made.outputs.value());
    found.push_back(to_host(backend, made.outputs.value()).data);
    const std::vector<double> gradient = to_host(backend, tape.gradient(inputs)).data;
    found.back().insert(found.back().end(), gradient.begin(), gradient.end());
  }
  omp_set_num_threads(threads);
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}

}  // namespace
}  // namespace engram::harness::quasi_recurrence_test
