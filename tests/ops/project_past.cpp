/// Projections of the cached states into the packed past, and the kernels that keep rings and caches up to date.

#include "autograd/functions/project_past.hpp"

#include "autograd/tape.hpp"
#include "core/kernels/past.hpp"
#include "core/launch_count.hpp"
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

std::array<Variable, 2> both(PastProjections past) { return {std::move(past.keys), std::move(past.values)}; }

OpCase project(std::string name, std::vector<std::int32_t> window, std::vector<std::vector<Input>> inputs) {
  const HeadWindows windows(std::move(window));
  OpCase op;
  op.name = "project_past, " + std::move(name);
  op.inputs = std::move(inputs);
  op.function = [windows](std::span<const Variable> x) {
    return both(project_past(x[0].value(), x[1], x[2], windows));
  };
  op.tolerance.bf16 = kRounding;
  op.roles = {Role::activation, Role::matrix, Role::matrix};
  op.reference = [windows](std::span<const Array64> x) {
    return std::vector<Array64>{projected(x[0], x[1], windows), projected(x[0], x[2], windows)};
  };
  return op;
}

OpCase refused() {
  const Input cache = normal({1, 2, 3}).constant(), weight = normal({4, 3});
  OpCase op = project("wrong calls", {2, 1}, {{cache, weight, weight}});
  op.errors = {
      {.inputs = {normal({2, 3}).constant(), weight, weight}, .contains = {"project_past", "[B, C, n]", "[2, 3]"}},
      {.inputs = {cache, normal({4, 5}), weight}, .contains = {"[1, 2, 3]", "[4, 5]"}},
      {.inputs = {cache, normal({4}), weight}, .contains = {"[heads D, n]", "[4]"}},
      {.inputs = {cache, weight, normal({2, 3})}, .contains = {"value weight", "[4, 3]", "[2, 3]"}},
      {.inputs = {cache, normal({5, 3}), normal({5, 3})}, .contains = {"[5, 3]", "2 heads"}},
      {.inputs = {integers({1, 1, 3}, {0, 0, 0}), weight, weight}, .contains = {"cache", "i32", "f32"}},
      {.inputs = {cache, weight, weight},
       .contains = {"0 heads"},
       .function =
           [](std::span<const Variable> x) { return both(project_past(x[0].value(), x[1], x[2], HeadWindows{})); }},
  };
  return op;
}

/// Only one of the two goes on, or both weights are one.
OpCase part(std::string name, std::vector<Input> inputs, Function function, Reference reference) {
  OpCase op = project(std::move(name), {3, 5}, {inputs});
  op.roles.resize(inputs.size());
  op.function = std::move(function);
  op.reference = std::move(reference);
  return op;
}
const HeadWindows kPartWindows({3, 5});

std::vector<Input> inputs_of(std::int64_t streams, std::int64_t cached, std::int64_t width, std::int64_t rows) {
  return {normal({streams, cached, width}).constant(), normal({rows, width}), normal({rows, width})};
}

const OpCases cases{
    project("one window", {4, 4}, {inputs_of(2, 4, 3, 6)}),
    project("ragged windows", {5, 0, 2, 7},
            {inputs_of(2, 7, 3, 8), inputs_of(3, 9, 1, 4), inputs_of(1, 1, 5, 12),
             // Nothing cached yet: all zero, and so is the gradient.
             inputs_of(2, 0, 3, 8)}),
    // More rows and columns than one work item takes, and rows that are read in packs.
    project("long windows", {300, 1, 513},
            {inputs_of(2, 400, 5, 6), inputs_of(1, 2, 261, 9), inputs_of(2, 150, 24, 24)}),
    // More columns of a head than a block of a card takes: 160.
    project("deep heads", {40, 24}, {inputs_of(2, 33, 16, 160)}),
    part(
        "only values", inputs_of(2, 4, 3, 6),
        [](std::span<const Variable> x) { return project_past(x[0].value(), x[1], x[2], kPartWindows).values; },
        [](std::span<const Array64> x) { return projected(x[0], x[2], kPartWindows); }),
    part(
        "one weight", {normal({2, 4, 3}).constant(), normal({6, 3})},
        [](std::span<const Variable> x) { return both(project_past(x[0].value(), x[1], x[1], kPartWindows)); },
        [](std::span<const Array64> x) {
          const Array64 past = projected(x[0], x[1], kPartWindows);
          return std::vector<Array64>{past, past};
        }),
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
  Tensor keys = device.step.empty({0, 2}, DType::f32), values = device.step.empty({0, 2}, DType::f32);
  kernels::project_past_forward(device.step, cache, weight, weight, windows, keys, values);
  const Tensor set = device.step.empty({4, 5}, DType::f32);
  const Tensor held = device.upload(reference::constant(7, {4, 5}), DType::f32);
  kernels::project_past_backward(device.step, cache, windows, keys, values, {set, Write::set}, {held, Write::add});
  CHECK(to_host(device.backend, set).data == std::vector<double>(20, 0.0));
  CHECK(to_host(device.backend, held).data == std::vector<double>(20, 7.0));
}

Array64 rounded(Array64 x) {
  for (double& number : x.data) number = static_cast<float>(bf16(static_cast<float>(number)));
  return x;
}

/// The gradient of a weight: the sum over streams and positions of dy^T cache.
Array64 weight_gradient(const Array64& cache, const Array64& dy, const HeadWindows& windows) {
  const std::int64_t streams = cache.axis(0), cached = cache.axis(1), width = cache.axis(2), depth = dy.axis(1);
  Array64 sum = zeros({windows.heads() * depth, width});
  for (std::size_t h = 0; h < windows.window.size(); ++h) {
    const Array64 past = unpacked_past(dy, windows, streams, h, 0);
    const std::int64_t window = windows.window[h];
    for (std::int64_t b = 0; b < streams; ++b)
      for (std::int64_t age = std::max<std::int64_t>(0, window - cached); age < window; ++age)
        for (std::int64_t i = 0; i < depth; ++i)
          for (std::int64_t j = 0; j < width; ++j)
            sum.at(static_cast<std::int64_t>(h) * depth + i, j) +=
                past.at(b, age, i) * cache.at(b, cached - window + age, j);
  }
  return sum;
}

TEST_CASE("project_past: with products in bf16, every device rounds operands and not sums", "[kernels]") {
  // Rows read in packs and one by one; heads that a warp's part of a block does not end with.
  const std::int64_t width = GENERATE(24, 13), depth = width == 24 ? 40 : 3, streams = 3, cached = 90;
  const HeadWindows windows({70, 0, 130, 16});
  Device device;
  const std::vector<Array64> x =
      input_values("project_past in bf16",
                   {normal({streams, cached, width}), normal({4 * depth, width}), normal({4 * depth, width}),
                    normal({streams * windows.total, depth}), normal({streams * windows.total, depth})},
                   DType::f32);
  std::vector<Tensor> t;
  for (const Array64& one : x) t.push_back(device.upload(one, DType::f32));
  device.step.set_products(ProductPrecision::bf16);
  Tensor keys = device.step.empty(t[3].shape(), DType::f32), values = device.step.empty(t[3].shape(), DType::f32);
  const std::int64_t before = launch_count(device.backend);
  kernels::project_past_forward(device.step, t[0], t[1], t[2], windows, keys, values);
  const std::int64_t between = launch_count(device.backend);
  const Tensor dkey_weight = device.step.empty(t[1].shape(), DType::f32);
  const Tensor dvalue_weight = device.upload(x[2], DType::f32);
  kernels::project_past_backward(device.step, t[0], windows, t[3], t[4], {dkey_weight, Write::set},
                                 {dvalue_weight, Write::add});
  if (before >= 0) {  // for all heads together
    CHECK(between - before == 1);
    CHECK(launch_count(device.backend) - between == 2);
  }
  const Array64 cache = rounded(x[0]);
  Array64 added = weight_gradient(cache, rounded(x[4]), windows);
  for (std::size_t i = 0; i < added.data.size(); ++i) added.data[i] += x[2].data[i];
  const std::vector<Array64> got{to_host(device.backend, keys), to_host(device.backend, values),
                                 to_host(device.backend, dkey_weight), to_host(device.backend, dvalue_weight)};
  const std::vector<Array64> wanted{projected(cache, rounded(x[1]), windows), projected(cache, rounded(x[2]), windows),
                                    weight_gradient(cache, rounded(x[3]), windows), added};
  CHECK(compare_elements("rounded", got, wanted, 1e-6).empty());
  const std::vector<Array64> exact{projected(x[0], x[1], windows)};
  CHECK_FALSE(compare_elements("not rounded", std::span(got).first(1), exact, 1e-4).empty());
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
    Tensor values = device.step.empty(packed.shape(), DType::f64);
    const Tensor uploaded = device.upload(weight, DType::f64);
    kernels::project_past_forward(device.step, cache, uploaded, uploaded, windows, packed, values);
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
