#include "core/arena.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kSmallestSlab = std::size_t{1} << 20;
// Larger objects come from the heap each time: a tape of a few hundred operations is below.
constexpr std::size_t kLargestObject = std::size_t{1} << 20;

}  // namespace

Arena::Arena(Allocator& source, bool poison)
    : source_(&source),
      poison_(poison),
      objects_({.max_blocks_per_chunk = 0, .largest_required_pool_block = kLargestObject}) {}

Arena::~Arena() { release_slabs(); }

void Arena::add_slab(std::size_t bytes) {
  auto* data = static_cast<std::byte*>(source_->allocate(bytes));
  slabs_.push_back({data, bytes});
  capacity_ += bytes;
  ++generation_;
  insert_free(data, bytes);
}

void Arena::grow(std::size_t size) {
  grown_ += size;
  const std::size_t wanted = std::max({size, kSmallestSlab, capacity_ / 2 / kAlignment * kAlignment});
  try {
    add_slab(wanted);
  } catch (const OutOfMemory&) {
    // Half as much again as there is was asked for to have few slabs, not because all of it is needed.
    if (wanted == size) throw;
    add_slab(size);
  }
}

void Arena::release_slabs() {
  for (const Slab& slab : slabs_) source_->free(slab.data, slab.bytes);
  slabs_.clear();
  free_by_address_.clear();
  free_by_size_.clear();
  capacity_ = 0;
}

void Arena::insert_free(std::byte* begin, std::size_t bytes) {
  const auto next = free_by_address_.lower_bound(begin);
  // Slabs may touch by chance; only neighbours of one slab may be merged, or consolidation would break.
  const auto same_slab = [this](const std::byte* left, const std::byte* right) {
    return std::ranges::any_of(slabs_,
                               [&](const Slab& slab) { return left >= slab.data && right < slab.data + slab.bytes; });
  };
  if (next != free_by_address_.end() && begin + bytes == next->first && same_slab(begin, next->first)) {
    bytes += next->second;
    free_by_size_.erase({next->second, next->first});
    free_by_address_.erase(next);
  }
  auto previous = free_by_address_.lower_bound(begin);
  if (previous != free_by_address_.begin()) {
    --previous;
    if (previous->first + previous->second == begin && same_slab(previous->first, begin)) {
      free_by_size_.erase({previous->second, previous->first});
      previous->second += bytes;
      free_by_size_.insert({previous->second, previous->first});
      return;
    }
  }
  free_by_address_.emplace(begin, bytes);
  free_by_size_.emplace(bytes, begin);
}

void* Arena::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  auto fit = free_by_size_.lower_bound({size, nullptr});
  if (fit == free_by_size_.end()) {
    grow(size);
    fit = free_by_size_.lower_bound({size, nullptr});
  }
  const auto [available, begin] = *fit;
  free_by_size_.erase(fit);
  free_by_address_.erase(begin);
  if (available > size) {
    free_by_address_.emplace(begin + size, available - size);
    free_by_size_.emplace(available - size, begin + size);
  }
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  return begin;
}

void Arena::free(void* data, std::size_t bytes) noexcept {
  if (poison_) std::memset(data, 0xff, rounded(bytes));
  in_use_ -= rounded(bytes);
  insert_free(static_cast<std::byte*>(data), rounded(bytes));
}

void Arena::end_step() {
  if (in_use_ != 0)
    throw Error(
        text("arena: everything of a step must be let go at its end, ", in_use_, " bytes are still in use",
             "\n  let its tapes, variables and tensors go before end_step(), and copy what must survive into its own "
             "memory;\n  gradients of tables that no update took: ParameterStore::clear_row_gradients()"));
  if (slabs_.size() > 1) {
    // Best fit fragments a little: a sixteenth more than the peak makes most equal steps fit in one slab. Where one did
    // not fit, in as large a slab, that gets what was missing, little by little, as a step's other slabs may have been
    // larger than it needs.
    const std::size_t first = slabs_.front().bytes;
    const std::size_t bytes = rounded(std::max(peak_ + peak_ / 16, first + std::min(grown_, first / 8)));
    release_slabs();
    add_slab(bytes);
  }
  grown_ = 0;
}

}  // namespace engram
