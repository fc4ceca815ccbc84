/// What lies between the parts of a captured step, on every device.

#include <array>
#include <vector>

#include "core/device_ranks.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::captured_steps_test {
namespace {

struct StepFixture {
  Backend& backend = each_device();
  HeapAllocator heap{backend};
  Step step{backend, heap};
  Tensor x{{4}, DType::f32, backend.device(), heap}, y{{4}, DType::f32, backend.device(), heap};

  float first(const Tensor& tensor) {
    float value = 0;
    backend.copy(&value, tensor.raw(), sizeof(value), CopyKind::device_to_host);
    return value;
  }
};

TEST_CASE_METHOD(StepFixture, "captured step: what is between kernels is done there, in every replay", "[ops]") {
  std::vector<float> seen;
  const auto work = [this, &seen] {
    kernels::fill(step, x, static_cast<double>(7));
    // Reads what was computed, and writes what is computed with: neither may be captured.
    backend.between([this, &seen] {
      backend.synchronize();
      seen.push_back(first(x));
      const std::array<float, 4> next{static_cast<float>(seen.size()), 0, 0, 0};
      backend.copy(x.raw(), next.data(), sizeof(next), CopyKind::host_to_device);
    });
    backend.between([&seen] { seen.push_back(-1); });
    kernels::accumulate(step, x, 10.0, {y, Write::set});
  };
  work();
  CHECK(seen == std::vector<float>{7, -1});
  CHECK(first(y) == 10);
  const auto replay = backend.capture(work);
  CHECK(seen == std::vector<float>{7, -1, 7, -1});
  CHECK(first(y) == 30);
  replay->run();
  CHECK(seen == std::vector<float>{7, -1, 7, -1, 7, -1});
  CHECK(first(y) == 50);
}

// Here one rank; that several exchange what they should is for machines with several cards.
TEST_CASE_METHOD(StepFixture, "captured step: the library between cards has its place in the order of kernels",
                 "[gpu]") {
  OneRank host;
  const std::unique_ptr<Communicator> ranks = make_device_ranks(host, backend);
  if (ranks == nullptr) return;
  const auto work = [&] {
    kernels::fill(step, x, 3.0);
    gather_in_step(*ranks, backend, {{x.raw(), {x.bytes()}}});
    kernels::accumulate(step, x, 1.0, {y, Write::add});
  };
  kernels::fill(step, y, 0.0);
  work();
  const auto replay = backend.capture(work);
  replay->run();
  CHECK(first(y) == 9);
}

}  // namespace
}  // namespace engram::harness::captured_steps_test
