#pragma once
/// From the training text to the word vocabulary. Ids go by decreasing count; --min-count counts as if the rare words
/// had been replaced by "<unk>" in the text beforehand. The end token and "<unk>" themselves are never rare.

#include <cstdint>

#include "apps/data/word_corpus.hpp"
#include "apps/data/word_rules.hpp"
#include "apps/data/word_vocabulary.hpp"

namespace engram::data {

struct CollectedWords {
  WordVocabulary vocabulary;
  WordTable rare;                ///< words of train that became "<unk>"
  std::int64_t rare_tokens = 0;  ///< how often train has them
  bool unknown_added = false;    ///< "<unk>" is in the vocabulary though train has none
};

/// Throws UsageError for a min_count below 1.
CollectedWords collect_words(const WordSplit& train, const WordRules& rules);

}  // namespace engram::data
