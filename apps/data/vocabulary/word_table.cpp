#include "apps/data/vocabulary/word_table.hpp"

#include <limits>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// FNV-1a mixes upwards only: its low bits, which choose the slot, get the high ones too.
std::uint32_t folded_hash(std::string_view word) {
  const std::uint64_t hash = hash_of(word);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

WordTable::WordTable() : slots_(1024) {}

std::string_view WordTable::operator[](std::int64_t id) const {
  const auto i = static_cast<std::size_t>(id);
  const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(letters_).substr(begin, ends_[i] - begin);
}

std::size_t WordTable::place(std::string_view word, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id >= 0 && (slots_[at].hash != hash || (*this)[slots_[at].id] != word)) at = (at + 1) & mask;
  return at;
}

std::int32_t WordTable::find(std::string_view word) const { return slots_[place(word, folded_hash(word))].id; }

std::int32_t WordTable::add(std::string_view word) {
  const std::uint32_t hash = folded_hash(word);
  std::size_t at = place(word, hash);
  if (slots_[at].id >= 0) return slots_[at].id;
  if (size() >= std::numeric_limits<std::int32_t>::max() - 1)
    throw UsageError(text("vocabulary: there may be 2147483646 different words, got more\n  shorten the text"));
  if (2 * (ends_.size() + 1) > slots_.size()) {
    grow();
    at = place(word, hash);
  }
  slots_[at] = {hash, static_cast<std::int32_t>(size())};
  letters_ += word;
  ends_.push_back(letters_.size());
  return slots_[at].id;
}

void WordTable::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace engram::data
