#pragma once
/// The vocabulary of models that read byte pairs, learned here (byte_pairs.hpp) or given as codes (merge_codes.hpp). A
/// line ends at "\n" and nowhere else: "\r" is a letter. Each line end is one token, the model's end of a sentence, so
/// that a text comes back byte for byte from the tokens of a model that was learned here.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/byte_pairs.hpp"
#include "apps/data/vocabulary/merge_codes.hpp"
#include "apps/data/vocabulary/subword_model.hpp"
#include "apps/data/vocabulary/word_table.hpp"

namespace engram::data {

/// The model's file in a data folder, beside vocabulary.json.
inline constexpr std::string_view kModelFile = "vocabulary.model";

class SubwordVocabulary {
 public:
  static constexpr std::string_view kFormat = "engram subword vocabulary";

  /// `source_hash`: of what the model was learned from.
  SubwordVocabulary(BytePairs model, std::uint64_t source_hash);
  SubwordVocabulary(MergeCodes model, std::uint64_t source_hash);
  /// Of a model's file: codes that were given, or else a model of SentencePiece. Throws FileError for anything else.
  SubwordVocabulary(std::string model, const std::filesystem::path& source, std::uint64_t source_hash);
  /// Reads what json_text() wrote, or folder_json_text(), whose model is in the file kModelFile beside `source`. Throws
  /// FileError for what is missing, damaged or of another format.
  static SubwordVocabulary from_json(const nlohmann::json& json, const std::filesystem::path& source);

  const SubwordModel& model() const { return *model_; }
  std::int64_t size() const { return model_->size(); }  ///< V, at least 1
  std::int32_t end_token() const { return model_->end_token(); }
  /// Identifies the model.
  std::uint64_t hash() const { return hash_; }
  std::uint64_t source_hash() const { return source_hash_; }

  /// The ids of a UTF-8 text. A last line without a line end gets no end token. Throws UsageError for a text that is
  /// not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The text of tokens, which may end inside a character (Utf8Pieces). Words that stand apart have one space between
  /// two. With `before` (-1: none) it is what follows
  /// that token. Throws UsageError with position and id for an id outside [0, V).
  std::string decode(std::span<const std::int32_t> tokens, std::int32_t before = -1) const;

  /// All of it, for checkpoints: with the model in base64.
  std::string json_text() const;
  /// The contents of vocabulary.json, where the model has its own file.
  std::string folder_json_text() const;

 private:
  SubwordVocabulary(std::shared_ptr<const SubwordModel> model, std::uint64_t source_hash);

  std::shared_ptr<const SubwordModel> model_;
  std::uint64_t source_hash_;
  std::uint64_t hash_;
};

/// Encodes many lines; remembers words that it has met, as most texts are made of few. Memory is bounded.
class SubwordEncoder {
 public:
  /// The model must outlive it.
  explicit SubwordEncoder(const SubwordModel& model) : model_(model) {}

  /// Appends the ids of a UTF-8 line without its end. Where the model splits at spaces, words of more than 64 KiB are
  /// cut.
  void encode(std::string_view line, std::vector<std::int32_t>& ids);
  /// How many lines, or words where the model splits at spaces, were met whose subwords are those of another text. A
  /// word that is remembered counts once. Where words stand apart it is both: lines with other spaces than one between
  /// two words, and words.
  std::int64_t altered() const { return altered_; }

 private:
  void encode_apart(std::string_view line, std::vector<std::int32_t>& ids);
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids);
  void encode_anew(std::string_view text, std::vector<std::int32_t>& ids);

  static constexpr std::size_t kLongestWord = std::size_t{1} << 16, kLongestRemembered = 64;
  static constexpr std::int64_t kMostRemembered = std::int64_t{1} << 18;

  const SubwordModel& model_;
  WordTable words_;
  std::vector<std::size_t> ends_;         // where in remembered_ the ids of each word end
  std::vector<std::int32_t> remembered_;  // ids of all remembered words
  std::int64_t altered_ = 0;
};

}  // namespace engram::data
