#pragma once
/// The vocabulary of character models, a token being a byte. Ids go by first appearance in train, so that they are
/// those of the published character models' pipeline, or by decreasing count, as in that of Transformer-XL. In text8 a
/// space is the token '_' and the end token is kept apart from it, which encode() and decode() hide: they take and give
/// the text that people read.

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/corpus.hpp"
#include "core/names.hpp"

namespace engram::data {

/// Which splits the vocabulary is collected from. `all` serves small texts, whose valid and test may hold a byte that
/// train lacks: it goes by first appearance in train, valid, test, and the model never learns the additional ones.
enum class VocabularyFrom : std::uint8_t { train, all };
constexpr auto names_of(VocabularyFrom) {
  return std::to_array<Named<VocabularyFrom>>({{VocabularyFrom::train, "train"}, {VocabularyFrom::all, "all"}});
}

/// What the order of ids is: first appearance, or decreasing count in the splits that are collected from and, of equal
/// counts, first appearance ([transformer-xl 6.1]).
enum class ByteOrder : std::uint8_t { seen, count };
constexpr auto names_of(ByteOrder) {
  return std::to_array<Named<ByteOrder>>({{ByteOrder::seen, "seen"}, {ByteOrder::count, "count"}});
}

class ByteVocabulary {
 public:
  static constexpr std::string_view kFormat = "engram character vocabulary";

  /// Collects the vocabulary of a corpus; of newlines none where the corpus drops them.
  static ByteVocabulary collect(const Corpus& corpus, VocabularyFrom from, ByteOrder order = ByteOrder::seen);
  /// Reads what json_text() wrote; `source` is named in messages. Throws FileError for what is damaged or of another
  /// format.
  static ByteVocabulary from_json(const nlohmann::json& json, const std::filesystem::path& source);

  /// V, 1 to 256.
  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  /// The id of newline, or -1 if the vocabulary has none (newlines dropped, or a text without lines).
  std::int32_t end_token() const { return ids_[static_cast<unsigned char>('\n')]; }
  /// Identifies ids and characters together: equal vocabularies, and only they, read each other's tokens. It does not
  /// depend on the text that the vocabulary was collected from.
  std::uint64_t hash() const;
  /// Hash of the bytes that the vocabulary was collected from.
  std::uint64_t source_hash() const { return source_hash_; }

  /// Where the first byte is that the vocabulary lacks; the length of the text if it has them all.
  std::size_t find_unknown(std::string_view text) const;
  /// The ids of a text. Throws UsageError naming byte and position if the vocabulary lacks a byte.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The text of tokens. Throws UsageError with position and id for an id outside [0, V).
  std::string decode(std::span<const std::int32_t> tokens) const;

  /// The contents of vocabulary.json.
  std::string json_text() const;

 private:
  ByteVocabulary(std::vector<std::uint8_t> entries, bool space_is_underscore, std::uint64_t source_hash);

  std::vector<std::uint8_t> entries_;    // id -> byte
  std::array<std::int16_t, 256> ids_{};  // byte -> id, -1 for none; text8: space has the id of '_', which has none
  bool space_is_underscore_;
  std::uint64_t source_hash_;
};

}  // namespace engram::data
