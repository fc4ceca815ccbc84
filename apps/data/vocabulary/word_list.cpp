#include "apps/data/vocabulary/word_list.hpp"

#include <string>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {

WordVocabulary read_word_list(const std::filesystem::path& path, const WordRules& rules) {
  const std::string bytes = read_bytes(path);
  const auto reject = [&path](std::int64_t line, const auto&... fact) {
    throw FileError(text("prepare: a word list must be UTF-8 text with a word of its own on every line, got ", fact...,
                         " in line ", line, " of '", path.string(), "'"));
  };
  if (const std::size_t wrong = find_invalid_utf8(bytes); wrong < bytes.size())
    reject(line_number(bytes, wrong), "no UTF-8");
  using Piece = LineWordReader::Piece;
  WordTable words;
  std::int64_t line = 1;
  bool has_word = false;  // in this line; what follows it is its count or the like
  LineWordReader reader(bytes);
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next()) {
    if (piece == Piece::line_end) {
      if (!has_word) reject(line, "none");
      has_word = false;
      ++line;
    } else if (!std::exchange(has_word, true)) {
      if (words.find(reader.word()) >= 0) reject(line, "'", reader.word(), "' a second time");
      words.add(reader.word());
    }
  }
  if (words.size() == 0) reject(1, "none");

  WordMarks marks;
  if (words.find(kListUnknown) >= 0) marks.unknown = kListUnknown;
  const bool has_marks = rules.sentences != SentenceMarks::none;
  if (has_marks) marks.end_of_line = kSentenceMark;
  const bool end_of_line = rules.end_of_line || has_marks;
  if (end_of_line && words.find(marks.end_of_line) < 0)
    throw FileError(text("prepare: the word list must have ", marks.end_of_line, ", got '", path.string(), "' with ",
                         words.size(), " words without\n  ",
                         has_marks ? "the rule for sentences puts it between them" : "--eol drop makes no line ends"));
  return {std::move(words), end_of_line, hash_of(bytes), std::move(marks)};
}

}  // namespace engram::data
