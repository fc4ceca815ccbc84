/// Kernels that move and fill memory: those that no differentiable function reaches in every form.

#include "core/kernels/copy.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::copy_test {
namespace {

struct Fixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  Tensor tensor(const std::vector<double>& numbers, DType dtype) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return to_device(backend, memory, Array64{{count}, numbers}, values({count}, numbers), dtype);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

TEST_CASE_METHOD(Fixture, "convert: every pair of float types", "[ops]") {
  // 1 + 2^-8 is a tie of bf16, 1 + 2^-30 exists in f64 only.
  std::vector<double> numbers{0, -2.5, 1.00390625, 1 + 0x1p-30, 1e20};
  numbers.resize(16411, 3);
  const auto rounded = [&](DType dtype) { return host(tensor(numbers, dtype)); };
  for (const DType from : {DType::f32, DType::f64, DType::bf16})
    for (const DType to : {DType::f32, DType::f64, DType::bf16}) {
      INFO(name_of(from) << " to " << name_of(to));
      Tensor y = step.empty({16411}, to);
      kernels::convert(step, tensor(numbers, from), y);
      const bool narrower = size_of(to) < size_of(from);
      CHECK(host(y) == rounded(narrower ? to : from));
    }
  Tensor y = step.empty({5}, DType::i32);
  CHECK_THROWS_WITH(kernels::convert(step, tensor(numbers, DType::f32), y), ContainsSubstring("convert"));
}

TEST_CASE_METHOD(Fixture, "fill: every element type", "[ops]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32})
    for (const std::int64_t count : {0, 1, 16411}) {
      Tensor y = step.empty({count}, dtype);
      kernels::fill(step, y, -3);
      CHECK(host(y) == std::vector<double>(static_cast<std::size_t>(count), -3));
    }
}

TEST_CASE_METHOD(Fixture, "fill: what is larger than the caches, and no whole number of vectors", "[ops]") {
  if (backend.device().kind != DeviceKind::cpu) return;  // others have one way
  for (const auto& [dtype, size] : {std::pair{DType::f32, 4}, {DType::bf16, 2}}) {
    const std::int64_t count = (std::int64_t{16} << 20) / size + 21;
    Tensor y = step.empty({count}, dtype);
    kernels::fill(step, y, -3);
    const std::vector<double> numbers = host(y);
    CHECK(std::ranges::count(numbers, -3.0) == count);
  }
}

TEST_CASE_METHOD(Fixture, "accumulate: set and add with a factor", "[ops]") {
  const Tensor x = tensor({1, 2, 3}, DType::f64);
  Tensor y = step.empty({3}, DType::f64);
  kernels::accumulate(step, x, 2, {y, Write::set});
  CHECK(host(y) == std::vector<double>{2, 4, 6});
  kernels::accumulate(step, x, -0.5, {y, Write::add});
  CHECK(host(y) == std::vector<double>{1.5, 3, 4.5});
}

TEST_CASE_METHOD(Fixture, "copy_runs: nothing outside of the runs is touched", "[ops]") {
  const Tensor x = tensor({0, 1, 2, 3, 4, 5, 6, 7}, DType::f32);
  Tensor y = tensor(std::vector<double>(9, 100), DType::f32);
  kernels::copy_runs(step, x, {.offset = 1, .stride = 3}, {y, Write::set}, {.offset = 2, .stride = 4}, 2, 2);
  CHECK(host(y) == std::vector<double>{100, 100, 1, 2, 100, 100, 4, 5, 100});
  kernels::copy_runs(step, x, {.offset = 0, .stride = 0}, {y, Write::add}, {.offset = 0, .stride = 8}, 2, 1);
  CHECK(host(y) == std::vector<double>{100, 100, 1, 2, 100, 100, 4, 5, 100});
  kernels::copy_runs(step, x, {.offset = 7, .stride = 0}, {y, Write::add}, {.offset = 0, .stride = 8}, 2, 1);
  CHECK(host(y) == std::vector<double>{107, 100, 1, 2, 100, 100, 4, 5, 107});
}

}  // namespace
}  // namespace engram::harness::copy_test
