/// Every kernel exists on every device of this program, and the tests of this program, of which this is the last,
/// reached every one of them. Run alone, the second test case must fail.

#include <algorithm>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::kernel_coverage_test {
namespace {

/// A kernel that a device may lack, and why.
struct Exception {
  const char* kernel;
  DeviceKind device;
  const char* reason;
};
constexpr const char* kComposed = "cards compose it of products, biases and cross_entropy, whose memory is fast enough";
const std::vector<Exception> exceptions{{"linear_cross_entropy", DeviceKind::simulated, kComposed},
                                        {"linear_cross_entropy", DeviceKind::cuda, kComposed}};

bool excepted(const KernelSlot& slot, DeviceKind device) {
  return std::ranges::any_of(
      exceptions, [&](const Exception& e) { return e.kernel == std::string_view(slot.name()) && e.device == device; });
}

TEST_CASE("kernel coverage: every kernel is bound on every device", "[coverage]") {
  CHECK_FALSE(bound_kernels().empty());
  for (const auto& backend : harness::available_backends()) {
    const DeviceKind device = backend->device().kind;
    for (const KernelSlot* slot : bound_kernels()) {
      INFO(slot->name() << " on " << name_of(device));
      // An exception for a kernel that is there has outlived its reason.
      CHECK(slot->available(device) != excepted(*slot, device));
    }
  }
}

TEST_CASE("kernel coverage: names are unique", "[coverage]") {
  std::vector<std::string> names;
  for (const KernelSlot* slot : bound_kernels()) names.emplace_back(slot->name());
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST_CASE("kernel coverage: every kernel was reached by the tests before", "[coverage]") {
  for (const KernelSlot* slot : bound_kernels()) {
    INFO(slot->name());
    CHECK(slot->was_called());
  }
}

}  // namespace
}  // namespace engram::kernel_coverage_test
