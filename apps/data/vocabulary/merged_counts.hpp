#pragma once
/// How often a text has each subword that given codes make of it.

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/merge_list.hpp"
#include "apps/data/vocabulary/word_merger.hpp"
#include "apps/data/vocabulary/word_table.hpp"

namespace engram::data {

class MergedCounts {
 public:
  /// The merger must outlive it.
  explicit MergedCounts(const WordMerger& merger) : merger_(merger) {}

  /// Adds the words of a UTF-8 line: what is between spaces. Memory grows with different subwords, not with words.
  void add_line(std::string_view line);
  /// Those that occur at least `least` times, the most frequent first, of equally frequent ones the bytewise smaller,
  /// as "fastbpe getvocab" lists them.
  std::vector<CountedSubword> list(std::int64_t least);

 private:
  void add_words();

  static constexpr std::int64_t kMostWords = std::int64_t{1} << 20, kMostLetters = std::int64_t{1} << 26;
  const WordMerger& merger_;
  WordTable words_;  // met since they were cut last
  std::vector<std::int64_t> word_counts_;
  std::int64_t letters_ = 0;
  WordTable subwords_;
  std::vector<std::int64_t> counts_;
};

}  // namespace engram::data
