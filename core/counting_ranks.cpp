#include "core/counting_ranks.hpp"

#include <cstdlib>
#include <cstring>

namespace engram {
namespace {

/// Of nothing.
class Arrived final : public Transfer {
 public:
  bool advance() override { return true; }
  void wait() override {}
};

}  // namespace

std::unique_ptr<Transfer> CountingRanks::start_exchange(const void*, PartEnds, void*, PartEnds) {
  return std::make_unique<Arrived>();
}

std::unique_ptr<Transfer> CountingRanks::start_gather(void*, PartEnds) { return std::make_unique<Arrived>(); }

void CountingRanks::gather_host(const void* own, std::size_t bytes, void* all) {
  for (int q = 0; q < size_ && bytes > 0; ++q)
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(q) * bytes, own, bytes);
}

void CountingRanks::abort(int code) { std::_Exit(code); }

}  // namespace engram
