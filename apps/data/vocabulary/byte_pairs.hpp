#pragma once
/// Byte-pair encoding (Sennrich, Haddow, Birch 2016) by the library SentencePiece, whose headers only the source of
/// this file includes. A model is a list of subwords: letters, and what was joined from the pairs that were the most
/// frequent ones; one subword for each of the 256 bytes, which spell every letter that the list lacks; one that ends
/// a line; and one for what is unknown. The library has a mark, U+2581, for a space; here a subword's text has the
/// space itself.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/subword_counts.hpp"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace engram::data {

/// What a token stands for.
struct Subword {
  enum class Role : std::uint8_t { text, byte, unknown, mark };  ///< mark: of the model's own, without a text
  Role role = Role::text;
  std::string bytes;  ///< of the text; U+FFFD for what is unknown
};

class BytePairs {
 public:
  /// Learns a model of `vocabulary_size` subwords from counted words: a function of these two alone. Throws UsageError,
  /// naming the size that works, for one that is too small for the bytes, the two marks and the letters that the words
  /// have, or larger than the pairs that there are to join, with the `advice` then; and where the program was built
  /// without the library.
  static std::string learn(const SubwordCounts& counts, std::int64_t vocabulary_size, std::string_view advice = {});

  /// Reads a model that learn() or another program of the library wrote; `source` is named in messages. Throws
  /// FileError for bytes that are no model, and for a model without a subword that ends a sentence; UsageError where
  /// the program was built without the library.
  BytePairs(std::string model, const std::filesystem::path& source);

  const std::string& model() const { return model_; }  ///< the bytes of the file
  std::int64_t size() const { return static_cast<std::int64_t>(subwords_.size()); }
  std::int32_t end_token() const { return end_token_; }  ///< ends a line
  /// The subword of an id in [0, size()).
  const Subword& operator[](std::int32_t id) const { return subwords_[static_cast<std::size_t>(id)]; }
  bool has_bytes() const { return has_bytes_; }    ///< every text can be written
  bool adds_space() const { return adds_space_; }  ///< the model puts a space before every line
  /// No subword has a space but at its beginning, and spaces stay as they are: a line and its words, each with the
  /// space before it, have the same subwords. Models by learn() are so.
  bool splits_at_spaces() const { return splits_at_spaces_; }

  /// Appends the ids of a UTF-8 text without line ends.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  void encode_unmarked(std::string_view text, std::vector<std::int32_t>& ids) const;

  std::string model_;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
  std::vector<Subword> subwords_;
  std::vector<std::int32_t> byte_tokens_;  // of the 256 bytes; -1: none
  std::int32_t end_token_ = -1;
  bool has_bytes_ = false, adds_space_ = false, splits_at_spaces_ = false;
};

}  // namespace engram::data
