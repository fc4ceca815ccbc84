#include "autograd/functions/batch_norm.hpp"

#include <algorithm>
#include <limits>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/normalisations.hpp"

namespace engram::harness::batch_norm_test {
namespace {

constexpr BatchNormRule kRule{.epsilon = 1e-3, .momentum = 0.3};
constexpr reference::BatchNormRule kReferenceRule{.epsilon = kRule.epsilon, .momentum = kRule.momentum};

// x, gain, bias, running mean, running variance, mask
const std::vector<Role> kRoles{Role::activation, Role::vector, Role::vector, Role::vector, Role::vector};

std::vector<Input> arguments(const Input& x, std::int64_t n, const Input& mask = absent()) {
  return {x, normal({n}), normal({n}), normal({n}).constant(), positive({n}).constant(), mask};
}
/// A mask of `rows` rows, every `every`-th of which is masked.
Input mask(std::int64_t rows, std::int64_t every) {
  std::vector<double> numbers;
  for (std::int64_t r = 0; r < rows; ++r) numbers.push_back(r % every == 1 ? 0 : static_cast<double>(1 + r % 3));
  return harness::integers({rows}, numbers);
}

Tensor copy_of(Step& step, const Tensor& x) {
  Tensor copy = step.empty(x.shape(), x.dtype());
  step.backend().copy(copy.raw(), x.raw(), x.bytes(), CopyKind::device_to_device);
  return copy;
}

/// A bias that is not given is the gain: one vector as two inputs of the node.
const Variable& bias_of(std::span<const Variable> x) { return x[2] ? x[2] : x[1]; }
const Array64& bias_of(std::span<const Array64> x) { return x[2].given() ? x[2] : x[1]; }

RowMask mask_of(Step& step, const Variable& included) {
  if (!included) return {};
  const Array64 host = to_host(step.backend(), included.value());
  return {included.value(), static_cast<std::int64_t>(host.data.size()) - std::ranges::count(host.data, 0.0)};
}

/// The running statistics after the call are two more results; the given ones stay.
std::array<Variable, 3> normalise(std::span<const Variable> x) {
  Tape& tape = x[0].tape();
  const RunningStatistics running{copy_of(tape.step(), x[3].value()), copy_of(tape.step(), x[4].value())};
  Variable y = batch_norm(x[0], x[1], bias_of(x), running, mask_of(tape.step(), x[5]), kRule);
  return {std::move(y), tape.constant(running.mean), tape.constant(running.variance)};
}
std::vector<Array64> normalised(std::span<const Array64> x) {
  reference::BatchNorm y = reference::batch_norm_training(x[0], x[1], bias_of(x), x[3], x[4], x[5], kReferenceRule);
  return {y.y, y.running_mean, y.running_variance};
}

std::vector<Input> with_one_vector(std::vector<Input> inputs) {
  inputs[2] = absent();
  return inputs;
}

Input far_from_zero(std::int64_t rows, std::int64_t n) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < rows * n; ++i) numbers.push_back(1e4 + std::sin(12.9 * double(i) * double(i)));
  return values({rows, n}, numbers);
}

const OpCases cases{
    OpCase{.name = "batch_norm",
           .inputs = {arguments(normal({5, 3}), 3), arguments(normal({2, 3, 7}), 7),  // six rows
                      arguments(normal({1031, 3}), 3), arguments(normal({1031, 1}), 1),
                      arguments(normal({70, 264}), 264),  // several blocks of rows and of columns, in packs
                      arguments(normal({9, 33}), 33), arguments(normal({0, 3}), 3)},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.bf16 = kRounding},
           .roles = kRoles,
           .dropout = true,  // other statistics in inference
           .errors = {{.inputs = {normal({3, 7}), normal({6}), normal({7}), normal({7}), normal({7}), absent()},
                       .contains = {"batch_norm", "gain", "[7]", "[6]"}},
                      {.inputs = {normal({3, 7}), normal({7}), normal({1, 7}), normal({7}), normal({7}), absent()},
                       .contains = {"bias", "[7]", "[1, 7]"}},
                      {.inputs = {normal({3, 7}), normal({7}), normal({7}), normal({3}), normal({7}), absent()},
                       .contains = {"running mean", "[7]", "[3]"}},
                      {.inputs = {normal({3, 7}), normal({7}), normal({7}), normal({7}), index({7}, 2), absent()},
                       .contains = {"running variance", "i32"}},
                      {.inputs = {normal({3, 7}), normal({7}), normal({7}), normal({7}), normal({7}), mask(7, 3)},
                       .contains = {"mask", "[3]", "[7]"}},
                      {.inputs = {normal({3, 2}), normal({2}), normal({2}), normal({2}), normal({2}),
                                  values({3}, {1, 1, 1}).constant()},
                       .contains = {"mask", "i32", "f32"}},
                      {.inputs = {normal({3, 0}), normal({0}), normal({0}), normal({0}), normal({0}), absent()},
                       .contains = {"[3, 0]"}},
                      {.inputs = arguments(normal({1, 7}), 7),
                       .contains = {"batch_norm", "batch norm needs more than one row", "got 1"}},
                      {.inputs = arguments(normal({3, 2}), 2, harness::integers({3}, {0, 5, 0})),
                       .contains = {"batch norm needs more than one row", "got 1", "the other 2 are masked"}},
                      {.inputs = arguments(normal({3, 2}), 2, harness::integers({3}, {1, 5, 0})),
                       .contains = {"count of a mask", "2", "got 3"},
                       .function =
                           [](std::span<const Variable> x) {
                             return batch_norm(x[0], x[1], x[2], {x[3].value(), x[4].value()}, {x[5].value(), 3});
                           }},
                      {.inputs = arguments(normal({3, 2}), 2, harness::integers({3}, {1, 5, 0})),
                       .contains = {"count of a mask", "0 to its 3 rows", "got 4"},
                       .function =
                           [](std::span<const Variable> x) {
                             return batch_norm(x[0], x[1], x[2], {x[3].value(), x[4].value()}, {x[5].value(), 4});
                           }}}},
    OpCase{.name = "batch_norm, masked",
           .inputs = {arguments(normal({7, 3}), 3, mask(7, 3)), arguments(normal({2, 5, 8}), 8, mask(10, 2)),
                      arguments(normal({1031, 3}), 3, mask(1031, 4)), arguments(normal({131, 1}), 1, mask(131, 2)),
                      arguments(normal({70, 40}), 40, mask(70, 5)),
                      arguments(normal({4, 3}), 3, harness::integers({4}, {1, 1, 1, 1})),
                      arguments(normal({4, 3}), 3, harness::integers({4}, {0, 0, 0, 0})),
                      arguments(normal({0, 3}), 3, harness::integers({0}, {}))},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.bf16 = kRounding},
           .roles = kRoles,
           .dropout = true},
    // The gradient of x is zero, up to epsilon and rounding.
    OpCase{.name = "batch_norm, two rows",
           .inputs = {arguments(normal({2, 3}), 3), arguments(normal({4, 1}), 1, harness::integers({4}, {0, 1, 0, 1}))},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.f32 = 1e-5, .bf16 = kRounding, .negligible = 1},
           .roles = kRoles,
           .dropout = true},
    OpCase{.name = "batch_norm, one vector as gain and bias",
           .inputs = {with_one_vector(arguments(normal({5, 3}), 3)),
                      with_one_vector(arguments(normal({70, 40}), 40, mask(70, 5)))},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = kRoles,
           .dropout = true},
    // Deviations of about 1: the rounding of the mean itself to f32 is half a thousandth of them. In bf16 nothing would
    // be left of them.
    OpCase{.name = "batch_norm, far from zero",
           .inputs = {arguments(far_from_zero(1031, 2), 2), arguments(far_from_zero(40, 3), 3, mask(40, 3))},
           .function = normalise,
           .reference = normalised,
           .tolerance = {.f32 = 1e-3, .forward = 1e-11},
           .roles = kRoles,
           .dropout = true},
};

TEST_CASE("batch norm: in inference, the running statistics on every device", "[ops]") {
  Backend& backend = each_device();
  for (const OpCase& op : all_op_cases()) {
    if (!op.name.starts_with("batch_norm")) continue;
    for (std::size_t set = 0; set < op.inputs.size(); ++set)
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        if (dtype == DType::bf16 && !runs_in_bf16(backend, op)) continue;
        CAPTURE(op.name, set, name_of(dtype));
        const std::vector<Array64> x = input_values(op.name, op.inputs[set], dtype);
        const std::vector<Array64> wanted{
            reference::batch_norm_inference(x[0], x[1], bias_of(x), x[3], x[4], x[5], kReferenceRule), x[3], x[4]};
        const OpResult got = run_op(backend, op, set, {.dtype = dtype, .rounding = dtype, .inference = true});
        CHECK(got.recorded == 0);
        CHECK(got.faults.empty());
        const double tolerance = dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 2e-6 : kRounding;
        for (const std::string& fault : compare_norms("output", got.outputs, wanted, tolerance, 1e-4))
          FAIL_CHECK(fault);
      }
  }
}

struct BatchNormFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Variable leaf(Shape shape, const std::vector<double>& numbers) {
    return tape.leaf(
        to_device(backend, memory, Array64{{shape.count()}, numbers}, values({shape.count()}, numbers), DType::f64)
            .view(shape));
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

// [product-key 10], test 13.
TEST_CASE_METHOD(BatchNormFixture, "batch norm: a feature of 1 and 3", "[ops]") {
  const Variable x = leaf({2, 1}, {1, 3}), gain = leaf({1}, {1}), bias = leaf({1}, {0});
  const RunningStatistics running{leaf({1}, {0}).value(), leaf({1}, {1}).value()};
  const std::vector<double> y = host(batch_norm(x, gain, bias, running).value());
  CHECK(y[0] == Approx(-0.99999500).epsilon(0).margin(5e-9));
  CHECK(y[1] == Approx(+0.99999500).epsilon(0).margin(5e-9));
  CHECK(host(running.mean)[0] == Approx(0.2).epsilon(1e-14));
  CHECK(host(running.variance)[0] == Approx(0.9 + 0.1 * 2).epsilon(1e-14));

  Tape inference(step, Tape::Mode::inference);
  const auto constant = [&](const Variable& of) { return inference.constant(of.value()); };
  const Variable one = leaf({1, 1}, {3});  // one row is enough here
  const std::vector<double> z = host(batch_norm(constant(one), constant(gain), constant(bias), running).value());
  CHECK(z[0] == Approx((3 - 0.2) / std::sqrt(1.1 + 1e-5)).epsilon(1e-14));
  CHECK(host(running.mean)[0] == Approx(0.2).epsilon(1e-14));
  CHECK(host(running.variance)[0] == Approx(1.1).epsilon(1e-14));
  CHECK_THROWS_AS(batch_norm(one, gain, bias, running), ShapeError);
  CHECK(host(running.mean)[0] == Approx(0.2).epsilon(1e-14));
}

TEST_CASE_METHOD(BatchNormFixture, "batch norm: what is in masked rows changes nothing", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::vector<double>> seen;
  for (const double padding : {0.0, 1e30, nan}) {
    const Variable x = leaf({4, 2}, {1, 5, padding, padding, 3, -2, 2, 8}), gain = leaf({2}, {2, -1});
    const Variable bias = leaf({2}, {0.5, 1});
    const RunningStatistics running{leaf({2}, {0, 0}).value(), leaf({2}, {1, 1}).value()};
    Tensor included = step.empty({4}, DType::i32);
    const std::vector<std::int32_t> rows{1, 0, 1, 1};
    backend.copy(included.raw(), rows.data(), included.bytes(), CopyKind::host_to_device);
    const Variable y = batch_norm(x, gain, bias, running, {included, 3});
    tape.backward(y, leaf({4, 2}, {1, 2, padding, padding, 5, 6, 7, 9}).value());
    std::vector<double>& all = seen.emplace_back(host(y.value()));
    CHECK(all[2] == 0);
    CHECK(all[3] == 0);
    const std::vector<double> dx = host(tape.gradient(x));
    CHECK(dx[2] == 0);
    CHECK(dx[3] == 0);
    for (const Tensor& more :
         {tape.gradient(x), tape.gradient(gain), tape.gradient(bias), running.mean, running.variance})
      for (const double number : host(more)) all.push_back(number);
    CHECK(seen.back() == seen.front());
  }
  // The same rows without the one that was masked.
  const Variable x = leaf({3, 2}, {1, 5, 3, -2, 2, 8}), gain = leaf({2}, {2, -1}), bias = leaf({2}, {0.5, 1});
  const RunningStatistics running{leaf({2}, {0, 0}).value(), leaf({2}, {1, 1}).value()};
  const std::vector<double> y = host(batch_norm(x, gain, bias, running).value());
  for (const auto& [place, masked] : {std::pair{0, 0}, {1, 1}, {2, 4}, {3, 5}, {4, 6}, {5, 7}})
    CHECK(y[static_cast<std::size_t>(place)] == seen[0][static_cast<std::size_t>(masked)]);
}

}  // namespace
}  // namespace engram::harness::batch_norm_test
