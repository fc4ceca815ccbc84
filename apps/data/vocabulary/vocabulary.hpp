#pragma once
/// What a model's tokens mean: the vocabulary of a data set or a checkpoint: of characters, of words, or of subwords.
/// A value: copies are independent of each other.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/data/vocabulary/byte_vocabulary.hpp"
#include "apps/data/vocabulary/subword_vocabulary.hpp"
#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/data/vocabulary/word_vocabulary.hpp"

namespace engram::data {

class Vocabulary {
 public:
  Vocabulary(ByteVocabulary characters) : entries_(std::move(characters)) {}
  Vocabulary(WordVocabulary words) : entries_(std::move(words)) {}
  Vocabulary(SubwordVocabulary subwords) : entries_(std::move(subwords)) {}
  /// Reads what json_text() wrote, or a data folder's vocabulary.json. Throws FileError for a file that is missing,
  /// damaged or of another program.
  static Vocabulary load(const std::filesystem::path& path);
  /// Reads a vocabulary from the text of its file, as checkpoints hold it; `source` is named in messages.
  static Vocabulary parse(std::string_view json, const std::filesystem::path& source);

  TokenKind kind() const {
    return words() != nullptr ? TokenKind::word : subwords() != nullptr ? TokenKind::subword : TokenKind::character;
  }
  std::int64_t size() const;  ///< V, at least 1
  /// The id of newline, or -1 if the vocabulary has none.
  std::int32_t end_token() const;
  /// Identifies kind, ids and their meaning together: equal vocabularies, and only they, read each other's tokens.
  std::uint64_t hash() const;
  /// Hash of what the vocabulary was collected from.
  std::uint64_t source_hash() const;

  /// What the vocabulary lacks.
  struct Unknown {
    std::string what;    ///< the character or word, quoted
    std::size_t at = 0;  ///< its first byte in the text
  };
  /// The first of it in a text; nothing if the vocabulary has it all.
  std::optional<Unknown> find_unknown(std::string_view text) const;
  /// The ids of a text. Throws UsageError naming character or word and position for what the vocabulary lacks, and for
  /// words and subwords in a text that is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The text of tokens; words are joined by spaces, which depend on the token before the first one (-1: none). That of
  /// subwords, as that of characters, may end inside a character of UTF-8 (Utf8Pieces). Throws UsageError with position
  /// and id for an id outside [0, V).
  std::string decode(std::span<const std::int32_t> tokens, std::int32_t before = -1) const;

  /// All of it as JSON, for checkpoints.
  std::string json_text() const;
  /// The contents of a data folder's vocabulary.json, which may need the file of subwords()->model() beside it.
  std::string folder_json_text() const;

  /// The vocabulary of characters; null for other kinds.
  const ByteVocabulary* characters() const { return std::get_if<ByteVocabulary>(&entries_); }
  /// The vocabulary of words; null for other kinds.
  const WordVocabulary* words() const { return std::get_if<WordVocabulary>(&entries_); }
  /// The vocabulary of subwords; null for other kinds.
  const SubwordVocabulary* subwords() const { return std::get_if<SubwordVocabulary>(&entries_); }

 private:
  std::variant<ByteVocabulary, WordVocabulary, SubwordVocabulary> entries_;
};

}  // namespace engram::data
