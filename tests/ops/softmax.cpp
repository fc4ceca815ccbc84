#include "autograd/functions/softmax.hpp"

#include <cmath>
#include <limits>

#include "autograd/tape.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::softmax_test {
namespace {

const OpCases cases{
    OpCase{.name = "softmax",
           .inputs = {{normal({3, 7})}, {normal({5, 1})}, {normal({5, 16})}, {normal({2, 3, 1031})}, {normal({4})}},
           .function = [](std::span<const Variable> x) { return softmax(x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::softmax(x[0]); },
           .tolerance = {.bf16 = 3 * kRounding},
           .errors = {{.inputs = {normal({})}, .contains = {"at least one axis", "[]"}},
                      {.inputs = {normal({3, 0})}, .contains = {"[3, 0]"}}}},
};

/// Rows of 5 (scalar accesses on cards), 16 and 2000 (a block per row there).
TEST_CASE("softmax: infinite scores share the weight, NaN makes the row NaN", "[ops]") {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  Backend& backend = each_device();
  const std::int64_t n = GENERATE(5, 16, 2000);
  const DType dtype = GENERATE(DType::f32, DType::f64);
  CAPTURE(backend.device(), n, dtype);
  const std::size_t length = static_cast<std::size_t>(n), last = length - 1;
  std::vector<double> x(7 * length, 1.0);
  const auto row = [&x, length](std::size_t r) { return x.begin() + static_cast<std::ptrdiff_t>(r * length); };
  row(0)[2] = kInf;                                              // one
  row(1)[1] = row(1)[static_cast<std::ptrdiff_t>(last)] = kInf;  // two, beside -infinity
  row(1)[0] = -kInf;
  std::fill(row(2), row(3), -kInf);  // all
  row(3)[0] = -kInf;                 // beside finite ones
  row(4)[3] = kNaN;
  row(5)[0] = kInf, row(5)[static_cast<std::ptrdiff_t>(last)] = kNaN;
  std::fill(row(6), x.end(), -kInf), row(6)[4] = kNaN;
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  Tape tape(step, Tape::Mode::inference);
  const Shape shape{7, n};
  const Variable in = tape.constant(to_device(backend, memory, Array64{{7, n}, x}, values(shape, x), dtype));
  const Array64 y = to_host(backend, softmax(in).value());
  for (std::int64_t i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(y.at(0, i) == (i == 2 ? 1 : 0));
    CHECK(y.at(1, i) == (i == 1 || i == n - 1 ? 0.5 : 0));
    CHECK(y.at(2, i) == Approx(1 / static_cast<double>(n)));
    CHECK(y.at(3, i) == Approx(i == 0 ? 0 : 1 / static_cast<double>(n - 1)).margin(1e-300));  // the smallest normals
    for (std::int64_t r = 4; r < 7; ++r) CHECK(std::isnan(y.at(r, i)));
  }
}

}  // namespace
}  // namespace engram::harness::softmax_test
