/// bf16 as storage: what kernels read, compute and write beside the op table's runs in bf16, and what is refused.

#include <cmath>
#include <limits>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/add.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/layer_norm.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::bf16_storage_test {
namespace {

struct Fixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Tensor tensor(Shape shape, const std::vector<double>& numbers, DType dtype = DType::bf16) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, values(shape, numbers), dtype).view(shape);
  }
  Tensor normal_numbers(Shape shape, const std::string& name, DType dtype) {
    return tensor(shape, input_values(name, {normal(shape)}, dtype)[0].data, dtype);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

TEST_CASE_METHOD(Fixture, "bf16: sums are rounded to nearest, ties to even", "[bf16]") {
  if (!backend.stores_bf16()) return;
  constexpr double infinity = std::numeric_limits<double>::infinity(), largest = 0x1.fep127;
  const std::vector<double> a{1, 1.0078125, 1, largest, largest, -infinity, infinity, 0x1p-126};
  const std::vector<double> b{0x1p-8, 0x1p-8, 0x1.8p-8, 0x1p118, 0x1p119, 1, -infinity, -0x1p-127};
  const std::vector<double> wanted{1, 1.015625, 1.0078125, largest, infinity, -infinity, NAN, 0x1p-127};
  Tensor y = step.empty({8}, DType::bf16);
  kernels::add(step, tensor({8}, a), tensor({8}, b), y);
  const std::vector<double> got = host(y);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK((std::isnan(wanted[i]) ? std::isnan(got[i]) : got[i] == wanted[i]));
  }
}

TEST_CASE_METHOD(Fixture, "bf16: added to f32 without a rounding", "[bf16]") {
  if (!backend.stores_bf16()) return;
  for (const std::int64_t count : {1, 8, 1031}) {
    const std::vector<double> ones(static_cast<std::size_t>(count), 1);
    Tensor y = tensor({count}, ones, DType::f32);
    kernels::accumulate(step, tensor({count}, ones), 0x1p-20, {y, Write::add});
    CHECK(host(y) == std::vector<double>(ones.size(), 1 + 0x1p-20));
  }
}

TEST_CASE_METHOD(Fixture, "bf16: layer norm takes the sum as it is stored", "[bf16]") {
  if (!backend.stores_bf16()) return;
  for (const std::int64_t n : {7, 64, 1032}) {
    const Shape shape{3, n};
    const Tensor x = normal_numbers(shape, "x", DType::bf16), residual = normal_numbers(shape, "residual", DType::bf16);
    const Tensor gain = normal_numbers({n}, "gain", DType::f32), bias = normal_numbers({n}, "bias", DType::f32);
    Tensor sum = step.empty(shape, DType::bf16), none;
    struct Result {
      Tensor y, mean, reciprocal_deviation;
    };
    const auto result = [&] {
      return Result{step.empty(shape, DType::bf16), step.empty({3}, DType::f32), step.empty({3}, DType::f32)};
    };
    Result of_both = result(), of_sum = result();
    kernels::layer_norm_forward(step, x, residual, gain, bias, 1e-5, sum, of_both.y, of_both.mean,
                                of_both.reciprocal_deviation);
    kernels::layer_norm_forward(step, sum, none, gain, bias, 1e-5, none, of_sum.y, of_sum.mean,
                                of_sum.reciprocal_deviation);
    CHECK(host(of_both.y) == host(of_sum.y));
    CHECK(host(of_both.mean) == host(of_sum.mean));
    CHECK(host(of_both.reciprocal_deviation) == host(of_sum.reciprocal_deviation));
  }
}

TEST_CASE_METHOD(Fixture, "bf16: vectors must be f32, weights bf16, logits f32", "[bf16]") {
  const Variable x = tape.leaf(tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Variable weight = tape.leaf(tensor({1, 3}, {1, 2, 3}));
  CHECK_THROWS_WITH(linear(x, weight, tape.leaf(tensor({1}, {1}))), ContainsSubstring("bias must be f32, got bf16"));
  CHECK_THROWS_WITH(linear(x, tape.leaf(tensor({1, 3}, {1, 2, 3}, DType::f32))),
                    ContainsSubstring("weight must be bf16, got f32"));
  const Tensor target = to_device(backend, memory, Array64{{2}, {0, 1}}, harness::integers({2}, {0, 1}), DType::f32);
  CHECK_THROWS_WITH(
      cross_entropy(tape.leaf(tensor({2, 3}, {1, 2, 3, 4, 5, 6})), target, tensor({2}, {1, 1})),
      ContainsSubstring("logits must be f32 or f64, got bf16") && ContainsSubstring("ProductResult::summed"));
}

TEST_CASE("bf16: the CPU has no kernels for it, and says so", "[bf16]") {
  Backend& cpu = *available_backends().front();
  int refused = 0;
  for (const OpCase& op : all_op_cases()) {
    if (op.tolerance.bf16 == 0) continue;
    INFO(op.name);
    CHECK_FALSE(runs_in_bf16(cpu, op));
    try {
      run_op(cpu, op, 0, {.dtype = DType::bf16});
    } catch (const DTypeError& error) {
      ++refused;
      CHECK(std::string(error.what()).find("bf16") != std::string::npos);
    }
  }
  CHECK(refused >= 20);  // the others call no kernel
}

}  // namespace
}  // namespace engram::harness::bf16_storage_test
