#include "cuda/simulated/cost/sector_set.hpp"

#include <bit>
#include <cstddef>

namespace engram::simulated {

SectorSet::Page& SectorSet::page(std::uintptr_t number) {
  if (number != last_number_) {
    last_page_ = &pages_[number];  // stays where it is when others come
    last_number_ = number;
  }
  if (last_page_->generation != generation_) *last_page_ = {.generation = generation_, .bits = {}};
  return *last_page_;
}

bool SectorSet::insert(std::uintptr_t number) {
  std::uint64_t& bits = page(number / kInPage).bits[number % kInPage / 64];
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  if ((bits & bit) != 0) return false;
  bits |= bit;
  return true;
}

void SectorSet::insert(const SectorSet& other) {
  for (const auto& [number, from] : other.pages_) {
    if (from.generation != other.generation_) continue;
    Page& to = page(number);
    for (std::size_t i = 0; i < to.bits.size(); ++i) to.bits[i] |= from.bits[i];
  }
}

std::int64_t SectorSet::count() const {
  std::int64_t sum = 0;
  for (const auto& [number, page] : pages_)
    if (page.generation == generation_)
      for (const std::uint64_t bits : page.bits) sum += std::popcount(bits);
  return sum;
}

}  // namespace engram::simulated
