/// What a card refuses of captured steps and of operands of products, refused here.

#include <array>
#include <memory>

#include "core/error.hpp"
#include "cuda/blas.hpp"
#include "cuda/launch.hpp"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

__global__ void add_one(float* to) { to[threadIdx.x] += 1; }

TEST_CASE("capture: a step runs again on its memory", "[simulated]") {
  DeviceFixture device;
  auto* const data = static_cast<float*>(device.backend->reserve(32 * sizeof(float)));
  for (int i = 0; i < 32; ++i) data[i] = 0;
  const auto replay =
      device.backend->capture([&] { launch(device.step, {.blocks = 1, .threads = 32}, add_one, data); });
  replay->run();
  CHECK(data[31] == 2);
  device.backend->release(data);
}

TEST_CASE("capture: memory of the device must not be given back inside", "[simulated]") {
  DeviceFixture device;
  void* const data = device.backend->reserve(512);
  CHECK_THROWS_WITH(device.backend->capture([&] { device.backend->release(data); }),
                    ContainsSubstring("a captured step must not give back memory of the device, got 512 bytes"));
  // The device is ready for the next one.
  CHECK_FALSE(device.backend->capturing());
  int runs = 0;
  device.backend->capture([&] { device.backend->between([&] { ++runs; }); })->run();
  CHECK(runs == 2);
}

TEST_CASE("capture: a step is void when its memory was given back", "[simulated]") {
  DeviceFixture device;
  // Copies, products and launches alike.
  const auto refused = [&](auto use) {
    void* const data = device.backend->reserve(1024);
    const auto replay = device.backend->capture([&] { use(static_cast<float*>(data)); });
    replay->run();
    device.backend->release(data);
    CHECK_THROWS_WITH(replay->run(), ContainsSubstring("replay: a captured step must find its memory as it was") &&
                                         ContainsSubstring("was given back"));
    // The next reservation of the size often lies there: it is other memory.
    void* const other = device.backend->reserve(1024);
    if (other == data)
      CHECK_THROWS_WITH(replay->run(), ContainsSubstring("and is other memory now"));
    else
      CHECK_THROWS_AS(replay->run(), DeviceError);
    device.backend->release(other);
  };
  refused([&](float* data) {
    // In the middle of a reservation, too.
    launch(device.step, {.blocks = 1, .threads = 32}, add_one, data + 100);
  });
  refused([&](float* data) { device.backend->copy(data + 8, data, 32, CopyKind::device_to_device); });
  refused([&](float* data) {
    multiply_exactly(device.step, {.m = 2,
                                   .n = 2,
                                   .k = 2,
                                   .batch = 1,
                                   .factor = 1,
                                   .a = {.data = data, .row_stride = 2, .batch_stride = 0, .transposed = false},
                                   .b = {.data = data, .row_stride = 2, .batch_stride = 0, .transposed = false},
                                   .write = Write::set,
                                   .c = data + 16,
                                   .row_stride = 2,
                                   .batch_stride = 0});
  });
}

TEST_CASE("library: what the one of cards refuses of operands", "[simulated]") {
  DeviceFixture device;
  alignas(16) std::array<float, 64> memory{};
  float* const data = memory.data();
  const auto product = [&](auto change) {
    Product<float> p{.m = 2,
                     .n = 3,
                     .k = 4,
                     .batch = 1,
                     .factor = 1,
                     .a = {.data = data, .row_stride = 4, .batch_stride = 0, .transposed = false},
                     .b = {.data = data, .row_stride = 3, .batch_stride = 0, .transposed = false},
                     .write = Write::set,
                     .c = data + 32,
                     .row_stride = 3,
                     .batch_stride = 0};
    change(p);
    multiply_exactly(device.step, p);
  };
  CHECK_NOTHROW(product([](auto&) {}));
  CHECK_THROWS_WITH(product([](auto& p) { p.a.row_stride = 3; }),
                    ContainsSubstring("rows of the left operand must be at least as far apart as they are long, got 4 "
                                      "numbers every 3"));
  CHECK_NOTHROW(product([](auto& p) {
    p.a.row_stride = 2;  // 4 rows of 2 numbers
    p.a.transposed = true;
  }));
  CHECK_THROWS_WITH(product([](auto& p) { p.b.row_stride = 0; }), ContainsSubstring("rows of the right operand"));
  CHECK_THROWS_WITH(product([](auto& p) { p.row_stride = 2; }), ContainsSubstring("rows of the product"));
  CHECK_THROWS_WITH(
      product([](auto& p) { p.a.data = reinterpret_cast<const float*>(reinterpret_cast<const char*>(p.a.data) + 2); }),
      ContainsSubstring("the left operand must be aligned to its numbers of 4 bytes"));
  // What never comes to the library is nobody's mistake.
  CHECK_NOTHROW(product([](auto& p) {
    p.k = 0;
    p.a.row_stride = 0;
  }));
}

}  // namespace
}  // namespace engram::cuda::tests
