#include "cuda/simulated/cost/access_counter.hpp"

#include <link.h>

#include <algorithm>
#include <bit>

namespace engram::simulated {
namespace {

constinit thread_local AccessCounter* active_counter = nullptr;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Where the program or library that holds a kernel lies, and this OS thread's copy of its thread-local variables:
/// static shared arrays are such (intrinsics.hpp).
struct Image {
  std::uintptr_t code = 0;  // an address inside
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  std::uintptr_t locals = 0;
  std::size_t local_bytes = 0;
};

int look_at_image(dl_phdr_info* info, std::size_t, void* data) {
  Image found;
  found.code = static_cast<Image*>(data)->code;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      found.begin = std::min(found.begin, static_cast<std::uintptr_t>(info->dlpi_addr + segment.p_vaddr));
      found.end = std::max(found.end, static_cast<std::uintptr_t>(info->dlpi_addr + segment.p_vaddr + segment.p_memsz));
    } else if (segment.p_type == PT_TLS && info->dlpi_tls_data != nullptr) {
      found.locals = number(info->dlpi_tls_data);
      found.local_bytes = segment.p_memsz;
    }
  }
  if (found.code - found.begin >= found.end - found.begin) return 0;
  *static_cast<Image*>(data) = found;
  return 1;
}

}  // namespace

AccessCounter*& AccessCounter::active() { return active_counter; }

void AccessCounter::begin_launch(const LaunchRecord& launch) {
  cost_ = {};
  launch_reads_.clear();
  launch_writes_.clear();
  kernel_ = launch.function;
}

void AccessCounter::begin_block(int threads, const SharedMemory& shared) {
  Image image;
  image.code = number(kernel_);
  dl_iterate_phdr(&look_at_image, &image);
  program_ = {image.begin, image.end};
  static_shared_ = {image.locals, image.locals + image.local_bytes};
  dynamic_shared_ = {number(shared.data()), number(shared.data()) + shared.bytes()};
  used_warps_ = static_cast<std::size_t>(threads + kWarpSize - 1) / kWarpSize;
  if (warps_.size() < used_warps_) warps_.resize(used_warps_);
  for (std::size_t w = 0; w < used_warps_; ++w)
    warps_[w].lanes = std::min(kWarpSize, threads - static_cast<int>(w) * kWarpSize);
  parameters_.assign(static_cast<std::size_t>(threads), 0);
  block_reads_.clear();
  ++cost_.blocks;
  cost_.warps += static_cast<std::int64_t>(used_warps_);
}

void AccessCounter::end_block() {
  for (std::size_t w = 0; w < used_warps_; ++w) {
    close(warps_[w]);
    warps_[w].sites.clear();  // of another kernel next time, perhaps
  }
}

AccessCounter::Memory AccessCounter::memory_of(const Thread& thread, std::uintptr_t address) const {
  if (dynamic_shared_.has(address)) return Memory::shared;
  const Region stack{number(thread.fiber.stack().bottom),
                     number(thread.fiber.stack().bottom) + thread.fiber.stack().bytes};
  if (stack.has(address)) {
    const std::uintptr_t parameters = parameters_[static_cast<std::size_t>(thread.number)];
    return parameters != 0 && address >= parameters ? Memory::unseen : Memory::local;
  }
  // threadIdx and the like.
  const Region own{number(&thread), number(&thread) + sizeof thread};
  if (own.has(address) || address == number(&current_place)) return Memory::unseen;
  if (static_shared_.has(address)) return Memory::shared;
  return program_.has(address) ? Memory::unseen : Memory::global;
}

void AccessCounter::access(const void* site, const void* address, std::size_t bytes, WarpAccess::Kind kind) {
  if (current_place == nullptr || bytes == 0) return;  // by the host, between blocks
  const auto& thread = *static_cast<const Thread*>(current_place);
  std::uintptr_t at = number(address);
  const Memory memory = memory_of(thread, at);
  if (memory == Memory::unseen) return;
  if (memory == Memory::local) {
    cost_.local_bytes += static_cast<std::int64_t>(bytes);
    return;
  }
  Warp& warp = warps_[static_cast<std::size_t>(thread.number / kWarpSize)];
  // What is longer than a card moves at once goes in pieces, as far as its alignment allows. Two calls are five bytes
  // apart at least, so that the first pieces have sites of their own, and later ones share theirs.
  std::uintptr_t piece = 0;
  while (bytes > 0) {
    std::size_t size = 16;
    while (size > bytes || at % size != 0) size /= 2;
    if (bytes <= 16 && std::has_single_bit(bytes)) size = bytes;
    note(warp, thread.lane(), number(site) + std::min<std::uintptr_t>(piece++, 3), at, size, kind, memory);
    at += size;
    bytes -= size;
  }
}

void AccessCounter::note(Warp& warp, int lane, std::uintptr_t site, std::uintptr_t address, std::size_t bytes,
                         WarpAccess::Kind kind, Memory memory) {
  // One place can read memory of two kinds, through a pointer that differs from lane to lane.
  SiteAccesses& place = warp.sites[site * 2 + (memory == Memory::shared ? 1 : 0)];
  place.memory = memory;
  const std::uint32_t time = place.times[static_cast<std::size_t>(lane)]++;
  if (time == place.accesses.size())
    place.accesses.push_back({.address = {}, .lanes = 0, .bytes = static_cast<std::uint8_t>(bytes), .kind = kind});
  WarpAccess& together = place.accesses[time];
  together.address[static_cast<std::size_t>(lane)] = address;
  together.lanes |= 1u << lane;
}

void AccessCounter::entered(const void* frame) {
  if (current_place == nullptr) return;
  const auto& thread = *static_cast<const Thread*>(current_place);
  std::uintptr_t& parameters = parameters_[static_cast<std::size_t>(thread.number)];
  if (parameters == 0) parameters = number(frame);
}

void AccessCounter::product() {
  if (current_place == nullptr) return;
  Warp& warp = warps_[static_cast<std::size_t>(static_cast<const Thread*>(current_place)->number / kWarpSize)];
  if (++warp.products < kWarpSize) return;
  warp.products = 0;
  ++cost_.mma;
}

void AccessCounter::multiplied(int group, int columns, int steps) {
  constexpr int kWarps = 4;
  for (int w = group * kWarps; w < (group + 1) * kWarps; ++w) close(warps_[static_cast<std::size_t>(w)]);
  cost_.mma += std::int64_t{kWarps} * columns / 8 * steps;
  // Each step reads its operand once for all four warps, 128 bytes a wavefront.
  const std::int64_t bytes = std::int64_t{columns} * steps * 16 * 2;
  cost_.shared_reads.add({.requests = steps,
                          .lanes = std::int64_t{kWarpSize} * steps,
                          .bytes = bytes,
                          .wavefronts = bytes / 128,
                          .least_wavefronts = bytes / 128});
}

void AccessCounter::barrier() {
  cost_.barriers += static_cast<std::int64_t>(used_warps_);
  for (std::size_t w = 0; w < used_warps_; ++w) close(warps_[w]);
}

void AccessCounter::met(int warp, bool all) {
  ++cost_.collectives;
  if (all) close(warps_[static_cast<std::size_t>(warp)]);
}

void AccessCounter::close(Warp& warp) {
  for (auto& [site, place] : warp.sites) {
    if (place.accesses.empty()) continue;
    for (const WarpAccess& access : place.accesses)
      place.memory == Memory::shared ? count_shared(access) : count_global(access);
    place.accesses.clear();
    place.times.fill(0);
  }
}

void AccessCounter::count_global(const WarpAccess& access) {
  const TouchedSectors sectors(access);
  const int lanes = std::popcount(access.lanes);
  const GlobalAccessCost cost{.requests = 1,
                              .lanes = lanes,
                              .bytes = std::int64_t{lanes} * access.bytes,
                              .used_bytes = sectors.wanted_bytes(),
                              .sectors = sectors.count()};
  cost_.atomics += access.kind == WarpAccess::Kind::atomic ? 1 : 0;
  if (access.kind == WarpAccess::Kind::read) cost_.reads.add(cost);
  if (access.kind != WarpAccess::Kind::write) {
    for (const TouchedSector& sector : sectors) {
      launch_reads_.insert(sector.number);
      if (block_reads_.insert(sector.number)) cost_.l2_bytes += 32;
    }
  }
  if (access.kind != WarpAccess::Kind::read) {
    cost_.writes.add(cost);
    cost_.l2_bytes += 32 * std::int64_t{sectors.count()};
    for (const TouchedSector& sector : sectors) launch_writes_.insert(sector.number);
  }
}

void AccessCounter::count_shared(const WarpAccess& access) {
  const SharedWavefronts wavefronts = shared_wavefronts(access);
  const int lanes = std::popcount(access.lanes);
  const SharedAccessCost cost{.requests = 1,
                              .lanes = lanes,
                              .bytes = std::int64_t{lanes} * access.bytes,
                              .wavefronts = wavefronts.needed,
                              .least_wavefronts = wavefronts.least};
  cost_.atomics += access.kind == WarpAccess::Kind::atomic ? 1 : 0;
  (access.kind == WarpAccess::Kind::read ? cost_.shared_reads : cost_.shared_writes).add(cost);
}

}  // namespace engram::simulated
