#pragma once
/// A text with the ids of a model (PrepareOptions::given): which rules follow from the model, and what of the text it
/// does not know.

#include <string>
#include <vector>

#include "apps/data/prepare/options.hpp"
#include "apps/data/text/corpus.hpp"

namespace engram::data {

/// The options with what follows from a given vocabulary; as they are without one. Throws UsageError for options that
/// it decides, and for one of placeholders.
PrepareOptions with_given(PrepareOptions options);

/// Adds that splits are the same text, where they are.
void add_given_note(const PrepareOptions& options, std::vector<std::string>& notes);

/// Throws one FileError that counts all bytes that the vocabulary lacks, of all splits together.
void require_given_bytes(const Corpus& corpus, const GivenVocabulary& given);

}  // namespace engram::data
