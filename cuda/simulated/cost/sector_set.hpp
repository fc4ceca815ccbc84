#pragma once
/// Sets of 32-byte sectors of memory, for what a launch, or a block of it, touches at least once.

#include <array>
#include <cstdint>
#include <unordered_map>

namespace engram::simulated {

class SectorSet {
 public:
  static constexpr std::uintptr_t kSectorBytes = 32;
  /// Whether the sector was not in it yet. `number` is an address / kSectorBytes.
  bool insert(std::uintptr_t number);
  void insert(const SectorSet& other);
  /// Forgets all sectors, but not the memory for them.
  void clear() { ++generation_; }
  std::int64_t count() const;
  /// Calls use(number) for every sector, in no particular order.
  template <class Use>
  void each(Use use) const {
    for (const auto& [number, page] : pages_) {
      if (page.generation != generation_) continue;
      for (std::uintptr_t bit = 0; bit < kInPage; ++bit)
        if ((page.bits[bit / 64] >> (bit % 64) & 1) != 0) use(number * kInPage + bit);
    }
  }

 private:
  static constexpr std::uintptr_t kInPage = 256;
  struct Page {
    std::uint64_t generation = 0;
    std::array<std::uint64_t, kInPage / 64> bits{};
  };
  Page& page(std::uintptr_t number);

  std::unordered_map<std::uintptr_t, Page> pages_;
  std::uint64_t generation_ = 1;
  std::uintptr_t last_number_ = UINTPTR_MAX;  // of the page that was last asked for
  Page* last_page_ = nullptr;
};

}  // namespace engram::simulated
