#pragma once
/// Different words, each with an id: its place in the order in which they were added. A hash table with open addressing
/// over one block of letters, because vocabularies have hundreds of thousands of words and texts hundreds of millions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace engram::data {

class WordTable {
 public:
  WordTable();

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  /// The word of an id in [0, size()). Valid until a word is added.
  std::string_view operator[](std::int64_t id) const;
  /// The id of a word, -1 if the table lacks it.
  std::int32_t find(std::string_view word) const;
  /// The id of a word, which is added if the table lacks it. Throws UsageError beyond 2^31 - 2 words.
  std::int32_t add(std::string_view word);

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;  // -1: free
  };

  /// The slot of the word, or the free one that it would take.
  std::size_t place(std::string_view word, std::uint32_t hash) const;
  void grow();

  std::string letters_;              // all words, one after the other
  std::vector<std::uint64_t> ends_;  // where in it each of them ends
  std::vector<Slot> slots_;          // a power of two, at most half of them in use
};

}  // namespace engram::data
