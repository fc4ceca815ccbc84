#include "core/kernel.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"

namespace engram::kernel_test {
namespace {

// Never bound to a device at the start, so that the registry of the real kernels stays what it is.
constinit Kernel<void(int value, int& result)> twice{"twice"};
constinit Kernel<void()> nowhere{"nowhere"};

struct Recorder final : KernelObserver {
  std::vector<std::string> events;
  void before(const char* kernel) override { events.push_back(std::string("before ") + kernel); }
  void after(const char* kernel) override { events.push_back(std::string("after ") + kernel); }
};

class Fixture {
 public:
  std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator memory{*backend};
  Step step{*backend, memory};
};

TEST_CASE("kernels: a slot without an implementation names itself and what it has", "[core]") {
  Fixture f;
  CHECK_THROWS_AS(nowhere(f.step), NotAvailable);
  CHECK_THROWS_WITH(nowhere(f.step), "nowhere: has no kernel for device cpu; it has: none");
  CHECK_FALSE(nowhere.was_called());
  nowhere.bind(DeviceKind::simulated, [](Step&) {});
  CHECK_THROWS_WITH(nowhere(f.step), "nowhere: has no kernel for device cpu; it has: simulated");
  CHECK(nowhere.available(DeviceKind::simulated));
  CHECK_FALSE(nowhere.available(DeviceKind::cpu));
}

TEST_CASE("kernels: a call reaches the function of the step's device, seen by the observer", "[core]") {
  Fixture f;
  twice.bind(DeviceKind::cpu, [](Step&, int value, int& result) { result = 2 * value; });
  const auto bound = bound_kernels();
  CHECK(std::ranges::count(bound, static_cast<KernelSlot*>(&twice)) == 1);
  CHECK_FALSE(twice.was_called());
  Recorder recorder;
  f.step.observe(&recorder);
  int result = 0;
  twice(f.step, 21, result);
  CHECK(result == 42);
  CHECK(twice.was_called());
  CHECK(recorder.events == std::vector<std::string>{"before twice", "after twice"});
  f.step.observe(nullptr);
  twice(f.step, 1, result);
  CHECK(recorder.events.size() == 2);
}

TEST_CASE("steps: what was begun is known on the host", "[core]") {
  Fixture f;
  CHECK(f.step.begun() == nullptr);
  f.step.begin({.step = 3, .learning_rate = 0.5});
  REQUIRE(f.step.begun() != nullptr);
  CHECK(f.step.begun()->step == 3);
  CHECK(f.step.begun()->learning_rate == 0.5);
  const std::vector<StepScalars> pieces{{.step = 4, .piece = 0}, {.step = 4, .piece = 1, .learning_rate = 2}};
  f.step.write_scalars(pieces);
  f.step.begin_piece(1);
  CHECK(f.step.begun()->piece == 1);
  CHECK(f.step.begun()->learning_rate == 2);
  f.step.begin({.step = 5});
  CHECK(f.step.begun()->step == 5);
  CHECK_THROWS_WITH(f.step.begin_piece(1), "step: has scalars for 1 pieces, got piece 1");
}

TEST_CASE("kernels: a program linked with the CPU has its kernels", "[core]") {
  const auto bound = bound_kernels();
  CHECK(std::ranges::any_of(bound, [](const KernelSlot* slot) { return slot->available(DeviceKind::cpu); }));
  CHECK(std::ranges::any_of(bound, [](const KernelSlot* slot) { return std::string_view(slot->name()) == "matmul"; }));
}

TEST_CASE("step: ids of random operations restart with begin", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator memory(*backend);
  Step step(*backend, memory, 77);
  CHECK(step.next_random().operation == 0);
  CHECK(step.next_random().operation == 1);
  step.begin({.step = 9, .piece = 2, .learning_rate = 0.5f});
  const RandomStream stream = step.next_random();
  CHECK(stream.operation == 0);
  CHECK(stream.seed == 77);
  CHECK(stream.scalars->step == 9);
  CHECK(step.scalars()->piece == 2);
  CHECK(step.scalars()->learning_rate == 0.5f);
}

TEST_CASE("step: tensors and workspaces come from its memory and go back", "[core]") {
  Fixture f;
  {
    const Tensor x = f.step.empty({3, 5}, DType::f64);
    CHECK(x.device() == Device{});
    CHECK(f.memory.bytes_in_use() == 120);
    {
      const Workspace scratch = f.step.workspace(100);
      scratch.data<char>()[99] = 1;
      CHECK(f.memory.bytes_in_use() == 220);
    }
    CHECK(f.memory.bytes_in_use() == 120);
  }
  CHECK(f.memory.bytes_in_use() == 0);
  CHECK(f.memory.faults().empty());
}

}  // namespace
}  // namespace engram::kernel_test
