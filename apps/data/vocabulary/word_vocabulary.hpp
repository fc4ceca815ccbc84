#pragma once
/// The vocabulary of word models: every word of the training text, the most frequent first, so that an adaptive softmax
/// can cut it into clusters ([all-attention 4, 7.2]). Where line ends are tokens, each is the word "<eos>". A
/// published list of words, in its own order, may have other names for the words with a meaning of their own
/// (WordMarks).

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/word_table.hpp"

namespace engram::data {

/// The words that stand for something else.
struct WordMarks {
  std::string end_of_line = "<eos>";  ///< a line end
  std::string unknown = "<unk>";      ///< a word that the vocabulary lacks
  friend bool operator==(const WordMarks&, const WordMarks&) = default;
};

class WordVocabulary {
 public:
  static constexpr std::string_view kFormat = "engram word vocabulary";
  static constexpr std::string_view kEndOfLine = "<eos>";
  static constexpr std::string_view kUnknown = "<unk>";

  /// Of words in the order of their ids. `end_of_line`: line ends are tokens; then `words` must have marks.end_of_line.
  WordVocabulary(WordTable words, bool end_of_line, std::uint64_t source_hash, WordMarks marks = {});
  /// Reads what json_text() wrote; `source` is named in messages. Throws FileError for what is damaged or of another
  /// format.
  static WordVocabulary from_json(const nlohmann::json& json, const std::filesystem::path& source);

  std::int64_t size() const { return words_.size(); }  ///< V, at least 1
  /// The id of the line end; -1 if line ends are no tokens.
  std::int32_t end_token() const { return end_token_; }
  /// The id of marks().unknown; -1 if the vocabulary lacks it.
  std::int32_t unknown_token() const { return words_.find(marks_.unknown); }
  const WordMarks& marks() const { return marks_; }
  /// The id of a word, -1 if the vocabulary lacks it.
  std::int32_t id_of(std::string_view word) const { return words_.find(word); }
  /// The word of an id in [0, V).
  std::string_view word(std::int32_t id) const { return words_[id]; }
  /// Identifies ids and words together, and whether line ends are tokens.
  std::uint64_t hash() const { return hash_; }
  /// Hash of the training text and of the rules that the vocabulary was collected by.
  std::uint64_t source_hash() const { return source_hash_; }

  /// The first word of a UTF-8 text that the vocabulary lacks, a part of `text`; nothing (data() is null) if none is.
  std::string_view find_unknown(std::string_view text) const;
  /// The ids of a UTF-8 text: of its words, and of each line end if line ends are tokens; a last line without a line
  /// end gets none. Throws UsageError for a text that is not UTF-8, and naming the word and its place for one that the
  /// vocabulary lacks, unless `unseen` is unk and it has a word for unknown ones.
  std::vector<std::int32_t> encode(std::string_view text, UnseenWords unseen = UnseenWords::error) const;
  /// The text of tokens: a space between two words, a new line for the end token. With `before` (-1: none) it is what
  /// follows the text of that token. Throws UsageError with position and id for an id outside [0, V).
  std::string decode(std::span<const std::int32_t> tokens, std::int32_t before = -1) const;

  /// The contents of vocabulary.json.
  std::string json_text() const;

 private:
  std::uint64_t compute_hash() const;

  WordTable words_;
  WordMarks marks_;
  bool end_of_line_;
  std::int32_t end_token_;
  std::uint64_t source_hash_;
  std::uint64_t hash_;
};

}  // namespace engram::data
