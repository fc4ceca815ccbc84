#pragma once
/// Words with ids that there are already, of a list or of a model: the tokens of one split, file after file or text
/// after text, marks and line ends among them.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/files/token_file.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/prepare/summary.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/word_vocabulary.hpp"

namespace engram::data {

/// Words that a vocabulary lacks, collected so that all of them are told at once.
class MissingWords {
 public:
  /// `place` for people: "line 3 of 'my.txt'".
  void add(std::string_view word, std::string_view place);
  bool empty() const { return count_ == 0; }
  /// "123 that are not, 45 different ones: 'foo' (12 times), ...; the first is in line 3 of 'my.txt'".
  std::string told() const;

 private:
  std::map<std::string, std::int64_t, std::less<>> words_;
  std::int64_t count_ = 0;
  std::string first_;
};

/// Whose ids the words have.
struct ListedWords {
  const WordVocabulary& vocabulary;
  std::string_view name;            ///< for messages: "the word list"
  MissingWords* missing = nullptr;  ///< takes words that must be known and are not; null: the first one is an error
};

class ListedEncoder {
 public:
  /// All must outlive it. `split` gets bytes, marks and unknown words, but neither tokens nor words.
  ListedEncoder(const ListedWords& listed, const WordRules& rules, SplitSummary& split, TokenFileWriter& writer);

  /// Throws FileError for a file that cannot be read, or is no UTF-8, and, where nothing takes them, for the first word
  /// that must be known and is not.
  SourceFacts add_file(const std::filesystem::path& path, const ByteWatch& watch);
  /// The lines of a part of a file, which begins with the line `first_line`. Throws as add_file().
  void add_text(std::string_view part, const std::string& path, std::int64_t first_line, const ByteWatch& watch);

 private:
  void add_piece(std::string& piece, std::int64_t first_byte);
  void begin_line();
  void end_line();
  void end_text(bool end_missing);
  void put_mark();
  void put_word(std::string_view word);
  void put(std::int32_t id);
  void write();

  static constexpr std::size_t kWritten = std::size_t{1} << 16;
  const ListedWords listed_;
  const WordRules& rules_;
  SplitSummary& split_;
  TokenFileWriter& writer_;
  std::vector<std::int32_t> ids_;
  std::string path_;
  std::int64_t line_ = 1;
  std::int32_t last_ = -1;
  bool line_open_ = false;
};

}  // namespace engram::data
