#pragma once
/// A text of the command line as a model reads it: as `engram prepare` read the text that it was trained on.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/text_rules.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

/// How a text is read.
struct TextReading {
  const Vocabulary& vocabulary;
  TextRules rules{};                             ///< those of the model's data, of words and subwords
  UnseenWords unseen = UnseenWords::error;       ///< what becomes of words that the vocabulary lacks
  std::string_view unseen_option = "--oov unk";  ///< that makes them unknown ones, for messages; empty: there is none
};

/// The ids of a text that may go on behind its end; of words none, if it is white space. A line that has no end gets
/// none, and in articles the last sentence neither, unless it looks as if it had ended (ArticleSentences::stop).
/// `where` and `what` name command and text in messages: "generate", "the prompt". Throws UsageError for what the
/// vocabulary lacks, unless it is words and `unseen` puts its word for unknown ones (<unk>, in articles UNK) in their
/// place, and for articles with the word </s> in them.
std::vector<std::int32_t> text_tokens(const std::string& written, const TextReading& reading, std::string_view where,
                                      std::string_view what);

/// What a text begins after: the line end or sentence mark, of articles without them still the mark that the model was
/// fed before each; -1 if the vocabulary has none.
std::int32_t text_start_token(const TextReading& reading);

/// The text of tokens that text_tokens() gave, for people: words as the model reads them, one space between two,
/// without the mark that the rules put before the first sentence.
std::string shown_text(const std::vector<std::int32_t>& tokens, const TextReading& reading);

}  // namespace engram::data
