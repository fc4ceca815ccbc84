#pragma once
/// launch() on the simulated device; cuda/launch.hpp includes it.

#include <span>
#include <type_traits>

#include "cuda/launch_size.hpp"
#include "cuda/simulated/atomics.hpp"
#include "cuda/simulated/backend.hpp"
#include "cuda/simulated/cost/counted_access.hpp"
#include "cuda/simulated/intrinsics.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline std::size_t most_shared_bytes(const Step& step) { return simulated::shared_limit_of(step.backend()); }
inline bool multiplies_by_warpgroups(const Step& step) { return simulated::warpgroup_products_of(step.backend()); }
inline int share_blocks(const Step& step) { return simulated::share_blocks_of(step.backend()); }

template <class... Parameters, class... Arguments>
void launch(const LaunchedFrom& from, const LaunchSize& size, void (*kernel)(Parameters...), Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "every parameter of the kernel needs an argument");
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "a kernel's parameters are copied as bytes");
  check_launch(from, size, most_shared_bytes(*from.step));
  if (size.is_empty() || !from.step->computes()) return;
  const auto index = [](const Extent& extent) {
    return simulated::Index3{static_cast<unsigned>(extent.x), static_cast<unsigned>(extent.y),
                             static_cast<unsigned>(extent.z)};
  };
  const auto call = [kernel, ... values = static_cast<Parameters>(arguments)]()
                        ENGRAM_NOT_COUNTED { kernel(values...); };
  simulated::LaunchRecord record{
      .blocks = index(size.blocks),
      .threads = index(size.threads),
      .shared_bytes = size.shared_bytes,
      .kernel = [](const void* erased) ENGRAM_NOT_COUNTED { (*static_cast<const decltype(call)*>(erased))(); },
      .argument_bytes = sizeof call,
      .scalars = from.step->scalars(),
      .function = reinterpret_cast<const void*>(kernel),
      .file = from.file,
      .line = from.line,
      .caller = from.function};
  simulated::Engine& engine = simulated::engine_of(from.step->backend());
  engine.start(
      [&engine, call, record]() mutable {
        record.arguments = &call;
        engine.run(record);
      },
      std::as_bytes(std::span(&call, 1)));
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
