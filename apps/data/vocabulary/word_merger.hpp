#pragma once
/// Cuts words into subwords by joining pairs, to the byte as fastBPE and subword-nmt do.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/data/vocabulary/merge_list.hpp"
#include "apps/data/vocabulary/word_table.hpp"

namespace engram::data {

class WordMerger {
 public:
  explicit WordMerger(MergeList list);

  const MergeList& list() const { return list_; }

  /// Replaces `pieces` by the subwords of a UTF-8 word of at least one letter, each but the last with kWordGoesOn
  /// behind it. Of all pairs that the word has the one that was learned first is joined, wherever it is, from left to
  /// right; then the next, until none is left. With `allowed` a subword that is not one of them is taken apart again,
  /// as far as it was joined. Time grows little faster than the word's length.
  void split(std::string_view word, const WordTable* allowed, std::vector<std::string>& pieces) const;

 private:
  struct Merge {
    std::int32_t rank = 0, joined = 0;
  };
  struct Part {
    std::int32_t symbol = -1;  // -1: of no pair
    std::size_t end = 0;       // of it in the word
    std::int32_t before = -1, next = -1;
  };

  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  std::vector<Part> letters_of(std::string_view word) const;
  void join(std::vector<Part>& parts) const;
  void take_apart(std::string_view piece, bool last, const WordTable& allowed, std::vector<std::string>& pieces) const;

  MergeList list_;
  WordTable symbols_;
  std::unordered_map<std::uint64_t, Merge> merges_;        // by left and right
  std::unordered_map<std::int32_t, std::size_t> made_of_;  // of joined symbols their pair
};

}  // namespace engram::data
