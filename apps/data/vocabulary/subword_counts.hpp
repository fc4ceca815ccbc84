#pragma once
/// What byte pairs are learned from: the words of a text, each with the space before it, and how often they occur. A
/// text of any size needs memory for its different words only.

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/word_table.hpp"

namespace engram::data {

class SubwordCounts {
 public:
  /// Bytes of the longest part of a word that is counted as one.
  static constexpr std::size_t kLongest = 1024;

  /// Adds a UTF-8 line without its end. Cut where the library cuts: before each space; and around characters that it
  /// learns nothing of, which are the tab, NUL and its own marks, U+2581 and U+2585.
  void add_line(std::string_view line);

  std::int64_t size() const { return words_.size(); }
  std::string_view word(std::int64_t index) const { return words_[index]; }
  std::int64_t count(std::int64_t index) const { return counts_[static_cast<std::size_t>(index)]; }
  /// How many different characters the words have.
  std::int64_t letters() const;
  /// Identifies words and counts together.
  std::uint64_t hash() const;

 private:
  void add(std::string_view word);

  WordTable words_;
  std::vector<std::int64_t> counts_;
};

}  // namespace engram::data
