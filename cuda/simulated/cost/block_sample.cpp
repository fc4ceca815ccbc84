#include "cuda/simulated/cost/block_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/random_stream.hpp"

namespace engram::simulated {
namespace {

constexpr std::uintptr_t kLineBytes = 128;

using Word = std::uintptr_t;

/// The arguments of a launch, as far as they are whole words.
std::vector<Word> words_of(const LaunchRecord& launch) {
  std::vector<Word> words(launch.argument_bytes / sizeof(Word));
  std::memcpy(words.data(), launch.arguments, words.size() * sizeof(Word));
  return words;
}

// In a random stream the number of the operation is the word before the address of the scalars.
static_assert(offsetof(RandomStream, operation) + sizeof(Word) == offsetof(RandomStream, scalars));

void append(std::string& text, const void* data, std::size_t bytes) {
  text.append(static_cast<const char*>(data), bytes);
}

/// Calls use(count) for all that add up.
template <class Use>
void each_count(LaunchCost& cost, Use use) {
  for (GlobalAccessCost* global : {&cost.reads, &cost.writes})
    for (std::int64_t* count :
         {&global->requests, &global->lanes, &global->bytes, &global->used_bytes, &global->sectors})
      use(*count);
  for (SharedAccessCost* shared : {&cost.shared_reads, &cost.shared_writes})
    for (std::int64_t* count :
         {&shared->requests, &shared->lanes, &shared->bytes, &shared->wavefronts, &shared->least_wavefronts})
      use(*count);
  for (std::int64_t* count : {&cost.blocks, &cost.warps, &cost.atomics, &cost.l2_bytes, &cost.local_bytes,
                              &cost.barriers, &cost.collectives, &cost.mma, &cost.exponentials})
    use(*count);
}

/// A number below `below` that looks random.
std::int64_t scattered(std::int64_t number, std::int64_t below) {
  std::uint64_t mixed = static_cast<std::uint64_t>(number + 1) * 0x9e3779b97f4a7c15;
  mixed ^= mixed >> 32;
  return static_cast<std::int64_t>(mixed % static_cast<std::uint64_t>(below));
}

/// Bytes that a launch must move of what its blocks touch.
std::int64_t distinct_bytes(std::span<const SampledBlock> sampled, double between,
                            std::vector<TouchedPart> SampledBlock::*touched) {
  double sum = 0;
  for (std::size_t part = 0; part < (sampled.front().*touched).size(); ++part) {
    double one_by_one = 0;
    std::uintptr_t low = UINTPTR_MAX, high = 0;
    for (std::size_t i = 0; i < sampled.size(); ++i) {
      const TouchedPart& of_block = (sampled[i].*touched)[part];
      const bool is_end = i == 0 || i + 1 == sampled.size();
      one_by_one += (is_end ? 1 : between) * static_cast<double>(of_block.sectors);
      low = std::min(low, of_block.low);
      high = std::max(high, of_block.high);
    }
    if (one_by_one > 0) sum += std::min(one_by_one, static_cast<double>(high - low + 1));
  }
  return static_cast<std::int64_t>(SectorSet::kSectorBytes) * std::llround(sum);
}

}  // namespace

LaunchMemory::LaunchMemory(const LaunchRecord& launch, const Reservations& reservations)
    : reservations_(&reservations) {
  for (const Word word : words_of(launch))
    if (reservations.holder(word) != 0) begins_.push_back(word / SectorSet::kSectorBytes);
  std::ranges::sort(begins_);
  // Not std::ranges::unique: its result is none to Clang 14 with this C++ library.
  begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
}

std::size_t LaunchMemory::part_of(std::uintptr_t sector) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, sector) - begins_.begin());
}

std::string LaunchMemory::likeness(const LaunchRecord& launch) const {
  std::string text;
  const auto add = [&text](const auto& value) { append(text, &value, sizeof value); };
  add(launch.function);
  for (const Index3& index : {launch.blocks, launch.threads})
    for (const unsigned size : {index.x, index.y, index.z}) add(size);
  add(launch.shared_bytes);
  std::vector<Word> words = words_of(launch);
  const auto scalars = reinterpret_cast<Word>(launch.scalars);
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i] == scalars) words[i - 1] = 0;
  for (const Word word : words) add(reservations_->holder(word) != 0 ? word % kLineBytes : word);
  return text;
}

void SampledBlock::take(const AccessCounter& counter, const LaunchMemory& memory) {
  cost = counter.cost();
  const auto by_part = [&memory](const SectorSet& sectors) {
    std::vector<TouchedPart> parts(memory.parts());
    sectors.each([&](std::uintptr_t sector) {
      TouchedPart& part = parts[memory.part_of(sector)];
      ++part.sectors;
      part.low = std::min(part.low, sector);
      part.high = std::max(part.high, sector);
    });
    return parts;
  };
  reads = by_part(counter.read_sectors());
  writes = by_part(counter.written_sectors());
}

std::vector<SampledBlock> choose_blocks(std::int64_t blocks, int wanted) {
  std::vector<SampledBlock> chosen;
  const auto choose = [&chosen](std::int64_t number) { chosen.push_back({.number = number}); };
  if (blocks <= std::max(wanted, 3)) {
    for (std::int64_t block = 0; block < blocks; ++block) choose(block);
    return chosen;
  }
  const std::int64_t between = blocks - 2, stretches = std::max(wanted, 3) - 2;
  choose(0);
  for (std::int64_t i = 0; i < stretches; ++i) {
    const std::int64_t begin = 1 + i * between / stretches, end = 1 + (i + 1) * between / stretches;
    choose(begin + scattered(i, end - begin));
  }
  choose(blocks - 1);
  return chosen;
}

LaunchCost cost_of_all(std::int64_t blocks, std::span<const SampledBlock> sampled) {
  const auto count = static_cast<std::int64_t>(sampled.size());
  LaunchCost ends, inner;
  for (std::int64_t i = 0; i < count; ++i)
    (i == 0 || i + 1 == count ? ends : inner).add(sampled[static_cast<std::size_t>(i)].cost);
  const double between = count > 2 ? static_cast<double>(blocks - 2) / static_cast<double>(count - 2) : 1;
  each_count(inner, [between](std::int64_t& number) { number = std::llround(between * static_cast<double>(number)); });
  ends.add(inner);
  ends.distinct_read_bytes = distinct_bytes(sampled, between, &SampledBlock::reads);
  ends.distinct_written_bytes = distinct_bytes(sampled, between, &SampledBlock::writes);
  return ends;
}

}  // namespace engram::simulated
