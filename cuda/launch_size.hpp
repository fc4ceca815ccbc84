#pragma once
/// How many blocks and threads a launch has, and what a card allows. Checked on every device, so that a kernel that
/// runs on the simulated one does not fail on a card for its size.

#include <cstddef>
#include <cstdint>

#include "core/error.hpp"
#include "core/step.hpp"
#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// One to three sizes: `.blocks = rows`, `.blocks = {columns, rows}`.
struct Extent {
  std::int64_t x, y, z;

  constexpr Extent(std::int64_t x_size = 1, std::int64_t y_size = 1, std::int64_t z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};

struct LaunchSize {
  Extent blocks;                 ///< x up to 2^31 - 1, y and z up to 65535; with a size of 0 nothing is started
  Extent threads;                ///< of a block: x and y up to 1024, z up to 64, their product up to 1024
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block, up to 227 KiB

  constexpr bool is_empty() const { return blocks.x == 0 || blocks.y == 0 || blocks.z == 0; }
};

/// The step, and the place in the source of the call of launch(), for messages and reports.
struct LaunchedFrom {
  Step* step;
  const char* file;
  int line;
  const char* function;

  LaunchedFrom(Step& of, const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE(),
               const char* in_function = __builtin_FUNCTION())
      : step(&of), file(in_file), line(at_line), function(in_function) {}
};

/// Of every card since compute capability 9.0 for data centres; others have less (most_shared_bytes() of
/// cuda/launch.hpp). Static shared memory is limited to 48 KiB by nvcc.
inline constexpr std::int64_t kMostThreads = 1024;
inline constexpr std::size_t kMostSharedBytes = 227 << 10;

/// About so many blocks have sums over many tiles, where shapes allow: four times three for each of 128
/// multiprocessors, so that little of a large card is lost in the last round. The same on every card, as the order of
/// sums follows.
inline constexpr int kShareBlocks = 1536;

/// Throws DeviceError when no card could do this, or not one with so much shared memory for a block.
inline void check_launch(const LaunchedFrom& from, const LaunchSize& size, std::size_t most_shared_bytes) {
  const auto check = [&from](const char* what, std::int64_t got, std::int64_t least, std::int64_t most) {
    if (got >= least && got <= most) return;
    throw DeviceError(text("launch: ", what, " must be ", least, " to ", most, ", got ", got, "\n  launched at ",
                           from.file, ":", from.line));
  };
  check("threads.x", size.threads.x, 1, 1024);
  check("threads.y", size.threads.y, 1, 1024);
  check("threads.z", size.threads.z, 1, 64);
  check("threads of a block", size.threads.x * size.threads.y * size.threads.z, 1, kMostThreads);
  check("blocks.x", size.blocks.x, 0, 0x7fffffff);
  check("blocks.y", size.blocks.y, 0, 65535);
  check("blocks.z", size.blocks.z, 0, 65535);
  check("bytes of shared memory", static_cast<std::int64_t>(size.shared_bytes), 0,
        static_cast<std::int64_t>(most_shared_bytes));
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
