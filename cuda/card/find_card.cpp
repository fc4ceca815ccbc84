#include "cuda/card/find_card.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/device.hpp"
#include "core/error.hpp"
#include "cuda/card/check.hpp"
#include "cuda/warpgroup_choice.hpp"

namespace engram::card {
namespace {

constexpr int kLeastCapability = 80;  // the first with bf16 numbers

std::string version_text(int version) { return text(version / 1000, ".", version % 1000 / 10); }

/// What ENGRAM_CUDA_ARCHITECTURES of this build can run on a card: its own machine code serves cards of the same major
/// number and an equal or higher minor one; the newest is also there as an intermediate form, which later cards
/// translate.
std::vector<int> built_capabilities() {
  std::vector<int> capabilities;
  std::string_view list = ENGRAM_CUDA_ARCHITECTURES;
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    std::from_chars(one.data(), one.data() + one.size(), capabilities.emplace_back());
  }
  return capabilities;
}
bool has_kernels_for(int capability) {
  const std::vector<int> all = built_capabilities();
  return std::ranges::any_of(all, [&](int built) { return built / 10 == capability / 10 && built <= capability; }) ||
         std::ranges::max(all) < capability;
}

[[noreturn]] void fail_without_driver(const std::string& device) {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (driver == 0)
    throw DeviceError(text(device, ": this machine must have NVIDIA's driver, got none\n  --device cpu needs none"));
  throw DeviceError(text(device, ": the driver must support CUDA ", version_text(runtime),
                         ", which this program was built with, got one for CUDA ", version_text(driver),
                         "\n  update the driver, or build with a CUDA Toolkit that is no newer than it; --device cpu "
                         "needs none"));
}

}  // namespace

CardFacts find_card(int index) {
  const std::string device = text("device ", Device{DeviceKind::cuda, index});
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) fail_without_driver(device);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string hidden = visible == nullptr ? std::string() : text(" (CUDA_VISIBLE_DEVICES is '", visible, "')");
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
    throw DeviceError(
        text(device, ": this machine must have a card, the driver sees none", hidden, "\n  --device cpu needs none"));
  check(code, device.c_str());
  if (index >= count)
    throw DeviceError(text(device, ": the index must be that of one of ", count, " cards, from 0 on", hidden,
                           "\n  --device cpu needs none"));
  check(cudaSetDevice(index), device.c_str());

  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), device.c_str());
  int kilohertz = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, index), device.c_str());
  CardFacts facts{.name = properties.name,
                  .capability = properties.major * 10 + properties.minor,
                  .processors = properties.multiProcessorCount,
                  .clock = 1e3 * kilohertz,
                  .shared_bytes = properties.sharedMemPerBlockOptin};
  facts.warpgroup_products =
      facts.capability == 90 && std::ranges::count(built_capabilities(), 90) > 0 && cuda::takes_warpgroups();
  const auto capability = text(properties.major, ".", properties.minor);
  if (facts.capability < kLeastCapability)
    throw DeviceError(text(device, ": a card must have compute capability 8.0 or newer, with bf16, got ", facts.name,
                           " with ", capability));
  if (!has_kernels_for(facts.capability))
    throw DeviceError(text(device, ": this build has kernels for the architectures ", ENGRAM_CUDA_ARCHITECTURES,
                           ", got ", facts.name, " with ", capability,
                           "\n  cmake -DENGRAM_CUDA_ARCHITECTURES=", facts.capability, " builds for it"));
  return facts;
}

}  // namespace engram::card
