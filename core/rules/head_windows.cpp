#include "core/rules/head_windows.hpp"

#include "core/error.hpp"

namespace engram {

HeadWindows::HeadWindows(std::vector<std::int32_t> windows) : window(std::move(windows)) {
  std::vector<std::int64_t> sums;
  for (std::int32_t positions : window) {
    if (positions < 0) throw ShapeError(text("head windows: must not be negative, got ", positions));
    sums.push_back(total);
    total += positions;
    if (positions > longest) longest = positions;
  }
  first = SharedArray<std::int64_t>(std::move(sums));
}

}  // namespace engram
