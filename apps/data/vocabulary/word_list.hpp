#pragma once
/// A published list of words as a vocabulary: the first word of every line, ids in the order of lines
/// ([transformer-xl 6.1], lm1b). Nothing is counted.

#include <filesystem>
#include <string_view>

#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/word_vocabulary.hpp"

namespace engram::data {

inline constexpr std::string_view kSentenceMark = "<S>";
inline constexpr std::string_view kListUnknown = "<UNK>";

/// With sentence marks the end token is kSentenceMark, else "<eos>" where line ends are tokens. The word for unknown
/// ones is kListUnknown if the list has it, else "<unk>". Throws FileError for a file that is not UTF-8, an empty line
/// or a word twice (naming line and word), and a list without a word that the rules need.
WordVocabulary read_word_list(const std::filesystem::path& path, const WordRules& rules);

}  // namespace engram::data
