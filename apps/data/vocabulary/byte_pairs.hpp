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
#include "apps/data/vocabulary/subword_model.hpp"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace engram::data {

class BytePairs final : public SubwordModel {
 public:
  /// Learns a model of `vocabulary_size` subwords from counted words: a function of these two alone. Throws UsageError,
  /// naming the size that works, for one that is too small for the bytes, the two marks and the letters that the words
  /// have, or larger than the pairs that there are to join, with the `advice` then; and where the program was built
  /// without the library.
  static std::string learn(const SubwordCounts& counts, std::int64_t vocabulary_size, std::string_view advice = {});

  /// Reads a model that learn() or another program of the library wrote; `source` is named in messages. Throws
  /// FileError for bytes that are no model, and for a model without a subword that ends a sentence; UsageError where
  /// the program was built without the library. Models by learn() split at spaces.
  BytePairs(std::string model, const std::filesystem::path& source);

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;

 private:
  void encode_unmarked(std::string_view text, std::vector<std::int32_t>& ids) const;

  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
  std::vector<std::int32_t> byte_tokens_;  // of the 256 bytes; -1: none
};

}  // namespace engram::data
