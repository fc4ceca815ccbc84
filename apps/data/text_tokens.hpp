#pragma once
/// A text of the command line as a model reads it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary.hpp"
#include "apps/data/word_rules.hpp"

namespace engram::data {

/// The ids of a text; of words none, if it is white space. `where` and `what` name command and text in messages:
/// "generate", "the prompt". Throws UsageError for what the vocabulary lacks, unless it is words and `unseen` puts
/// <unk> in their place.
std::vector<std::int32_t> text_tokens(const std::string& written, const Vocabulary& vocabulary, UnseenWords unseen,
                                      std::string_view where, std::string_view what);

}  // namespace engram::data
