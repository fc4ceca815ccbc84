#pragma once
/// From the training text to the word vocabulary. Ids go by decreasing count; --min-count counts as if the rare words
/// had been replaced by "<unk>" in the text beforehand. The end token and "<unk>" themselves are never rare. By
/// WordRules::end_first the end token is before all words ([transformer-xl 6.1]: specials first).

#include <cstdint>
#include <span>

#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/text/word_corpus.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/word_vocabulary.hpp"

namespace engram::data {

struct CollectedWords {
  WordVocabulary vocabulary;
  WordTable rare;                ///< words of train that became "<unk>"
  std::int64_t rare_tokens = 0;  ///< how often train has them
  bool unknown_added = false;    ///< "<unk>" is in the vocabulary though train has none
};

/// From the splits in the order given: train, and with WordRules::count_all valid and test. Throws UsageError for a
/// min_count below 1, and for end_first without end_of_line. `watch` hears how much has been counted.
CollectedWords collect_words(std::span<const WordSplit> splits, const WordRules& rules, const ByteWatch& watch = {});
inline CollectedWords collect_words(const WordSplit& train, const WordRules& rules) {
  return collect_words(std::span(&train, 1), rules);
}

}  // namespace engram::data
