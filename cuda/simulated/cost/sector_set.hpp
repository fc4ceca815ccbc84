#pragma once
/// Sets of 32-byte sectors of memory, for what a launch, or a block of it, touches at least once.

#include <array>
#include <cstdint>
#include <unordered_map>

namespace engram::simulated {

class SectorSet {
 public:
  /// Whether the sector was not in it yet. `number` is an address / 32.
  bool insert(std::uintptr_t number);
  void insert(const SectorSet& other);
  /// Forgets all sectors, but not the memory for them.
  void clear() { ++generation_; }
  std::int64_t count() const;

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
