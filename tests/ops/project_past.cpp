/// Projections of the cached states into the packed past, and the kernels that keep rings and caches up to date.

#include "autograd/functions/project_past.hpp"

#include "autograd/tape.hpp"
#include "core/kernels/past.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/packed_past.hpp"

namespace engram::harness::project_past_test {
namespace {

using reference::zeros;

/// Past of head h at position `age` of its window: the projection of the cached state, zero before the first one.
Array64 projected(const Array64& cache, const Array64& weight, const HeadWindows& windows) {
  const std::int64_t streams = cache.axis(0), cached = cache.axis(1), width = cache.axis(2);
  const std::int64_t depth = weight.axis(0) / windows.heads();
  Array64 packed = zeros({streams * windows.total, depth});
  for (std::size_t h = 0; h < windows.window.size(); ++h) {
    const std::int64_t window = windows.window[h];
    Array64 past = zeros({streams, window, depth});
    for (std::int64_t b = 0; b < streams; ++b)
      for (std::int64_t age = std::max<std::int64_t>(0, window - cached); age < window; ++age)
        for (std::int64_t i = 0; i < depth; ++i)
          for (std::int64_t j = 0; j < width; ++j)
            past.at(b, age, i) +=
                weight.at(static_cast<std::int64_t>(h) * depth + i, j) * cache.at(b, cached - window + age, j);
    pack_past(past, windows, h, 0, packed);
  }
  return packed;
}

OpCase project(std::string name, std::vector<std::int32_t> window, std::vector<std::vector<Input>> inputs) {
  const HeadWindows windows(std::move(window));
  OpCase op;
  op.name = "project_past, " + std::move(name);
  op.inputs = std::move(inputs);
  op.function = [windows](std::span<const Variable> x) { return project_past(x[0].value(), x[1], windows); };
  op.tolerance.bf16 = kRounding;
  op.roles = {Role::activation, Role::matrix};
  op.reference = [windows](std::span<const Array64> x) { return projected(x[0], x[1], windows); };
  return op;
}

OpCase refused() {
  OpCase op = project("wrong calls", {2, 1}, {{normal({1, 2, 3}).constant(), normal({4, 3})}});
  op.errors = {
      {.inputs = {normal({2, 3}).constant(), normal({4, 3})}, .contains = {"project_past", "[B, C, n]", "[2, 3]"}},
      {.inputs = {normal({1, 2, 3}).constant(), normal({4, 5})}, .contains = {"[1, 2, 3]", "[4, 5]"}},
      {.inputs = {normal({1, 2, 3}).constant(), normal({4})}, .contains = {"[heads D, n]", "[4]"}},
      {.inputs = {normal({1, 2, 3}).constant(), normal({5, 3})}, .contains = {"[5, 3]", "2 heads"}},
      {.inputs = {integers({1, 1, 3}, {0, 0, 0}), normal({4, 3})}, .contains = {"cache", "i32", "f32"}},
      {.inputs = {normal({1, 2, 3}).constant(), normal({4, 3})},
       .contains = {"0 heads"},
       .function = [](std::span<const Variable> x) { return project_past(x[0].value(), x[1], HeadWindows{}); }},
  };
  return op;
}

const OpCases cases{
    project("one window", {4, 4}, {{normal({2, 4, 3}).constant(), normal({6, 3})}}),
    project("ragged windows", {5, 0, 2, 7},
            {{normal({2, 7, 3}).constant(), normal({8, 3})},
             {normal({3, 9, 1}).constant(), normal({4, 1})},
             {normal({1, 1, 5}).constant(), normal({12, 5})},
             // Nothing cached yet: all zero, and so is the gradient.
             {normal({2, 0, 3}).constant(), normal({8, 3})}}),
    // More rows and columns than one work item takes.
    project("long windows", {300, 1, 513},
            {{normal({2, 400, 5}).constant(), normal({6, 5})}, {normal({1, 2, 261}).constant(), normal({9, 261})}}),
    refused(),
};

/// Memory and a step, on every device in turn; tensors go in and out as plain arrays.
struct Device {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  Tensor upload(const Array64& x, DType dtype) { return to_device(backend, memory, x, {}, dtype); }
};

// The op table cannot differentiate an output without elements.
TEST_CASE("project_past: without any window the weight's gradient is zero", "[kernels]") {
  const HeadWindows windows({0, 0});
  Device device;
  const Tensor cache = device.upload(reference::constant(1, {2, 3, 5}), DType::f32);
  const Tensor weight = device.upload(reference::constant(1, {4, 5}), DType::f32);
  Tensor y = device.step.empty({0, 2}, DType::f32), dweight = device.step.empty({4, 5}, DType::f32);
  kernels::project_past_forward(device.step, cache, weight, windows, y);
  kernels::project_past_backward(device.step, cache, windows, y, {dweight, Write::set});
  CHECK(to_host(device.backend, dweight).data == std::vector<double>(20, 0.0));
  Tensor held = device.upload(reference::constant(7, {4, 5}), DType::f32);
  kernels::project_past_backward(device.step, cache, windows, y, {held, Write::add});
  CHECK(to_host(device.backend, held).data == std::vector<double>(20, 7.0));
}

/// Element number `column` of stream b at absolute position t, made so that every one differs.
double state(std::int64_t b, std::int64_t t, std::int64_t column) {
  return static_cast<double>(100000 * b + 100 * t + column);
}

double stored(double number, DType dtype) {
  return dtype == DType::bf16 ? static_cast<float>(bf16(static_cast<float>(number))) : number;
}

Array64 states(std::int64_t streams, std::int64_t first, std::int64_t length, std::int64_t width) {
  Array64 block = zeros({streams, length, width});
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = 0; t < length; ++t)
      for (std::int64_t column = 0; column < width; ++column) block.at(b, t, column) = state(b, first + t, column);
  return block;
}

TEST_CASE("append_past: rings hold the last positions of every head", "[kernels]") {
  const HeadWindows windows({7, 0, 3, 12, 1});
  const std::int64_t streams = GENERATE(1, 3), depth = GENERATE(2, 8), heads = windows.heads();
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  Device device;
  if (dtype == DType::bf16 && !device.backend.stores_bf16()) return;
  Tensor ring = device.upload(zeros({streams * windows.total, depth}), dtype);
  std::int64_t count = 0;
  // Shorter than, as long as and longer than rings; several rounds of each ring in total.
  for (const std::int64_t length : {1, 2, 5, 7, 30, 1, 13, 3}) {
    kernels::append_past(device.step, device.upload(states(streams, count, length, heads * depth), dtype), count,
                         windows, ring);
    count += length;
    CAPTURE(count);
    const Array64 packed = to_host(device.backend, ring);
    for (std::size_t h = 0; h < windows.window.size(); ++h) {
      const Array64 past = unpacked_past(packed, windows, streams, h, count);
      for (std::int64_t b = 0; b < streams; ++b)
        for (std::int64_t age = 0; age < windows.window[h]; ++age)
          for (std::int64_t i = 0; i < depth; ++i) {
            const std::int64_t t = count - windows.window[h] + age, column = static_cast<std::int64_t>(h) * depth + i;
            const double wanted = t < 0 ? 0 : stored(state(b, t, column), dtype);
            if (past.at(b, age, i) != wanted)
              FAIL_CHECK("head " << h << ", stream " << b << ", position " << t << ": must be " << wanted << ", got "
                                 << past.at(b, age, i));
          }
    }
    CHECK(packed.count() == streams * windows.total * depth);
  }
  CHECK(count == 62);
  ring = {};
  CHECK(device.memory.faults().empty());
}

TEST_CASE("shift_cache: the last positions of cache and block", "[kernels]") {
  struct Sizes {
    std::int64_t cached, block, kept;
  };
  const Sizes sizes =
      GENERATE(Sizes{4, 3, 5}, Sizes{4, 3, 7}, Sizes{4, 3, 2}, Sizes{4, 3, 3}, Sizes{0, 3, 3}, Sizes{0, 3, 1},
               Sizes{0, 2, 6}, Sizes{2, 3, 9}, Sizes{5, 1, 5}, Sizes{5, 1, 1}, Sizes{3, 2, 0});
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  CAPTURE(sizes.cached, sizes.block, sizes.kept);
  const std::int64_t streams = 3, width = GENERATE(5, 8);
  Device device;
  if (dtype == DType::bf16 && !device.backend.stores_bf16()) return;
  {
    Tensor y = device.step.empty({streams, sizes.kept, width}, dtype);
    kernels::shift_cache(device.step, device.upload(states(streams, 1, sizes.cached, width), dtype),
                         device.upload(states(streams, 1 + sizes.cached, sizes.block, width), dtype), y);
    const Array64 got = to_host(device.backend, y);
    Array64 wanted = zeros({streams, sizes.kept, width});
    for (std::int64_t b = 0; b < streams; ++b)
      for (std::int64_t r = 0; r < sizes.kept; ++r)
        for (std::int64_t column = 0; column < width; ++column) {
          const std::int64_t t = sizes.cached + sizes.block - sizes.kept + r;
          if (t >= 0) wanted.at(b, r, column) = stored(state(b, 1 + t, column), dtype);
        }
    CHECK(got.data == wanted.data);
  }
  CHECK(device.memory.faults().empty());
}

TEST_CASE("rings and projected caches hold the same past", "[kernels]") {
  // What evaluation keeps (keys in rings) and what training makes anew (projections of cached states).
  const HeadWindows windows({6, 2});
  const std::int64_t streams = 2, depth = 2, width = 3;
  Device device;
  const Array64 weight = input_values("rings", {normal({4, width})}, DType::f32)[0];
  Tensor ring = device.upload(zeros({streams * windows.total, depth}), DType::f64);
  Tensor cache = device.upload(zeros({streams, 0, width}), DType::f64);
  std::int64_t count = 0;
  for (const std::int64_t length : {4, 1, 9, 2}) {
    const Array64 hidden =
        input_values("rings " + std::to_string(count), {normal({streams, length, width})}, DType::f32)[0];
    Array64 keys = zeros({streams, length, 4});
    for (std::int64_t b = 0; b < streams; ++b)
      for (std::int64_t m = 0; m < length; ++m)
        for (std::int64_t i = 0; i < 4; ++i)
          for (std::int64_t j = 0; j < width; ++j) keys.at(b, m, i) += weight.at(i, j) * hidden.at(b, m, j);
    kernels::append_past(device.step, device.upload(keys, DType::f64), count, windows, ring);
    Tensor next = device.step.empty({streams, 6, width}, DType::f64);
    kernels::shift_cache(device.step, cache, device.upload(hidden, DType::f64), next);
    cache = next;
    count += length;
    Tensor packed = device.step.empty({streams * windows.total, depth}, DType::f64);
    kernels::project_past_forward(device.step, cache, device.upload(weight, DType::f64), windows, packed);
    const Array64 from_ring = to_host(device.backend, ring), from_cache = to_host(device.backend, packed);
    std::vector<Array64> got, wanted;
    for (std::size_t h = 0; h < 2; ++h) {
      got.push_back(unpacked_past(from_ring, windows, streams, h, count));
      wanted.push_back(unpacked_past(from_cache, windows, streams, h, 0));
    }
    CAPTURE(count);
    CHECK(compare_elements("past of head", got, wanted, 1e-14).empty());
  }
}

}  // namespace
}  // namespace engram::harness::project_past_test
