#pragma once
/// Rules of `engram prepare` by the names of the corpora that they are published with ([transformer-xl 6.1]). A name
/// is no more than a short way to write the options that docs/reference/prepare.md lists for it.
///
///   enwik8         bytes, newlines lost, counted on all splits: 204 tokens
///   enwik8-bytes   the same with newlines: 205 tokens, and bits per token are bits per byte
///   text8          a to z and space, no end token, counted on all splits: 27 tokens
///   wikitext-103   words with "<eos>" after every line, id 0; train alone is counted, ties by first occurrence
///   lm1b           words with the ids of a list, "<S>" around sentences, "<UNK>" for words that the list lacks
///   lm1b-sentences the same with one "<S>" between sentences, as if each were read by itself
///   ptb            lower-cased words with "<eos>" after every line, id 0, counted on all splits

#include <string_view>

#include "apps/data/prepare/options.hpp"

namespace engram::data {

/// Sets kind and all rules; which files are read stays. Throws UsageError for a name that is not one of the above.
void set_named_rules(std::string_view name, PrepareOptions& options);

/// The name whose rules these are; "" if they are nobody's.
std::string_view named_rules(const PrepareOptions& options);

}  // namespace engram::data
