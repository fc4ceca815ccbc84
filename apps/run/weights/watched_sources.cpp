#include "apps/run/weights/watched_sources.hpp"

#include <memory>
#include <utility>

namespace engram {

std::vector<TensorSource> watched(std::vector<TensorSource> sources, const WriteWatch& watch) {
  if (!watch) return sources;
  std::int64_t all = 0;
  for (const TensorSource& source : sources)
    all += source.shape.count() * static_cast<std::int64_t>(size_of(source.dtype));
  const auto written = std::make_shared<std::int64_t>(0);
  for (TensorSource& source : sources)
    source.read = [inner = std::move(source.read), written, all, watch](std::size_t offset, std::span<std::byte> to) {
      inner(offset, to);
      *written += std::ssize(to);
      watch(*written, all);
    };
  return sources;
}

}  // namespace engram
