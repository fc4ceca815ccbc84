#include "autograd/functions/rms_norm.hpp"

#include "autograd/tape.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/normalisations.hpp"

namespace engram::harness::rms_norm_test {
namespace {

constexpr double kEpsilon = 1e-3;

const OpCases cases{
    OpCase{.name = "rms_norm",
           .inputs = {{normal({3, 7}), normal({7})},
                      {normal({5}), normal({5})},
                      {normal({2, 3, 131}), positive({131})},
                      {normal({211, 3}), normal({3})},      // several chunks of rows
                      {normal({35, 16}), normal({16})},     // the same, in packs
                      {normal({3, 1031}), normal({1031})},  // rows of a block
                      {normal({3, 7}), absent()},
                      {normal({0, 3}), normal({3})}},
           .function = [](std::span<const Variable> x) { return rms_norm(x[0], x[1], kEpsilon); },
           .reference = [](std::span<const Array64> x) { return reference::rms_norm(x[0], x[1], kEpsilon); },
           .tolerance = {.bf16 = kRounding},
           .roles = {Role::activation, Role::vector},
           .errors = {{.inputs = {normal({3, 7}), normal({6})}, .contains = {"rms_norm", "gain", "[7]", "[6]"}},
                      {.inputs = {normal({3, 7}), index({7}, 2)}, .contains = {"gain", "i32"}},
                      {.inputs = {normal({3, 0}), normal({0})}, .contains = {"[3, 0]"}},
                      {.inputs = {normal({}), absent()}, .contains = {"at least one axis", "[]"}}}},
    // Not in bf16, where the gain is f32 beside a row in bf16.
    OpCase{.name = "rms_norm, a row that is its own gain",
           .inputs = {{normal({5})}, {normal({131})}},
           .function = [](std::span<const Variable> x) { return rms_norm(x[0], x[0], kEpsilon); },
           .reference = [](std::span<const Array64> x) { return reference::rms_norm(x[0], x[0], kEpsilon); }},
    // The gradient of x is nearly zero: only epsilon keeps the root from being x itself.
    OpCase{.name = "rms_norm, one column",
           .inputs = {{positive({4, 1}), normal({1})}},
           .function = [](std::span<const Variable> x) { return rms_norm(x[0], x[1], kEpsilon); },
           .reference = [](std::span<const Array64> x) { return reference::rms_norm(x[0], x[1], kEpsilon); },
           .tolerance = {.bf16 = kRounding, .negligible = 1},
           .roles = {Role::activation, Role::vector}},
    OpCase{.name = "l2_norm",
           .inputs = {{normal({3, 7})}, {normal({5})}, {normal({2, 3, 132})}, {normal({40, 3})}, {normal({2, 1032})}},
           .function = [](std::span<const Variable> x) { return l2_norm(x[0]); },
           .reference = [](std::span<const Array64> x) { return reference::l2_norm(x[0]); },
           .tolerance = {.bf16 = kRounding},
           .errors = {{.inputs = {normal({3, 0})}, .contains = {"l2_norm", "[3, 0]"}},
                      {.inputs = {normal({})}, .contains = {"l2_norm", "at least one axis", "[]"}}}},
};

TEST_CASE("l2 norm: rows of zeros stay zero, with a gradient of zeros", "[ops]") {
  Backend& backend = each_device();
  for (const DType dtype : {DType::f32, DType::f64}) {
    GuardedAllocator memory(backend);
    Step step(backend, memory);
    Tape tape(step);
    const auto tensor = [&](const std::vector<double>& numbers) {
      return to_device(backend, memory, Array64{{3, 2}, numbers}, values({3, 2}, numbers), dtype);
    };
    const Variable x = tape.leaf(tensor({3, -4, 0, 0, 0, 2}));
    const Variable y = l2_norm(x);
    const std::vector<double> got = to_host(backend, y.value()).data;
    const std::vector<double> wanted{0.6, -0.8, 0, 0, 0, 1};
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-6));
    tape.backward(y, tensor({1, 2, 5, 6, 7, 0.5}));
    const std::vector<double> dx = to_host(backend, tape.gradient(x)).data;
    CHECK(dx[2] == 0);
    CHECK(dx[3] == 0);
    CHECK(dx[4] == Approx(3.5).epsilon(1e-6));  // across the row's direction: dy / |x|
    CHECK(dx[5] == Approx(0).margin(1e-6));     // along it: nothing
  }
}

}  // namespace
}  // namespace engram::harness::rms_norm_test
