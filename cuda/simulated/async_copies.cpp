#include "cuda/simulated/async_copies.hpp"

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"
#include "cuda/simulated/sanitizers.hpp"

namespace engram::simulated {
namespace {

constexpr std::byte kNaN{0xff};

std::size_t unit_of(const SharedMemory& shared, const void* to) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(to) - shared.data()) / AsyncCopies::kBytes;
}

}  // namespace

void AsyncCopies::begin_block(const SharedMemory& shared, std::size_t threads) {
  shared_ = &shared;
  if (copies_.size() < threads) copies_.resize(threads);
  for (std::vector<Copy>& of_thread : copies_) of_thread.clear();
  under_way_.assign(shared.bytes() / kBytes, false);
}

std::string AsyncCopies::begin(std::size_t thread, const Copy& copy) {
  const auto at = reinterpret_cast<std::uintptr_t>(copy.to) - reinterpret_cast<std::uintptr_t>(shared_->data());
  if (at % kBytes != 0 || reinterpret_cast<std::uintptr_t>(copy.from) % kBytes != 0)
    return text("an asynchronous copy must be from and to multiples of ", kBytes, " bytes, got byte ", at,
                " of the dynamic shared memory and address ", copy.from, " at ", copy.site.text());
  if (copy.from == nullptr && !copy.or_zeros)
    return text("an asynchronous copy must be from memory, got null at ", copy.site.text());
  const std::size_t unit = at / kBytes;
  if (unit >= under_way_.size())
    return text("an asynchronous copy must be into the block's ", shared_->bytes(),
                " bytes of dynamic shared memory, got another address at ", copy.site.text());
  if (under_way_[unit])
    return text("an asynchronous copy must not begin where another one is under way, got byte ", at, " twice at ",
                copy.site.text());
  under_way_[unit] = true;
  std::fill_n(static_cast<std::byte*>(copy.to), kBytes, kNaN);
  forbid_memory(copy.to, kBytes);
  copies_[thread].push_back(copy);
  return {};
}

std::string AsyncCopies::finish(const Copy& copy) {
  const std::size_t unit = unit_of(*shared_, copy.to);
  allow_memory(copy.to, kBytes);
  under_way_[unit] = false;
  const auto* const bytes = static_cast<const std::byte*>(copy.to);
  if (std::all_of(bytes, bytes + kBytes, [](std::byte b) { return b == kNaN; })) return {};
  return text("the target of an asynchronous copy must not be written until the thread has waited, got byte ",
              unit * kBytes, " of the copy that began at ", copy.site.text());
}

std::string AsyncCopies::exit(std::size_t thread) const {
  if (copies_[thread].empty()) return {};
  return text("a thread must wait for its asynchronous copies before it ends, got ", copies_[thread].size(),
              " under way, the first begun at ", copies_[thread].front().site.text());
}

}  // namespace engram::simulated
