#pragma once
/// Lines and words of a UTF-8 text, as the published pipelines of word data sets split them ([all-attention 7.1]). A
/// line ends at "\n", "\r\n" or a lone "\r" and nowhere else. Words are separated by white space: U+0009 to U+000D,
/// U+001C to U+0020, U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F and U+3000, the set of
/// Python's str.split(). So U+0085 or U+2028 end a word but no line.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace engram::data {

/// Walks through a text. The text must be UTF-8 and outlive the reader.
class LineWordReader {
 public:
  enum class Piece : std::uint8_t { word, line_end, text_end };

  explicit LineWordReader(std::string_view text) : text_(text) {}

  /// The next word or line end. A text whose last line has no line end has one line end less than lines.
  Piece next();
  /// After Piece::word: the word, and where its first byte is in the text.
  std::string_view word() const { return text_.substr(word_at_, at_ - word_at_); }
  std::size_t word_at() const { return word_at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t word_at_ = 0;
};

/// Bytes of the white space at the beginning of `rest` (UTF-8, not empty), line ends included; 0 if there is none.
std::size_t white_space_length(std::string_view rest);

/// How many words a text has; in bytes that are not UTF-8, how many runs of bytes that are no white space.
std::int64_t count_words(std::string_view text);

/// Whether the text is empty or its last line has a line end.
bool is_at_line_start(std::string_view text);

/// The first position from `at` on where a line starts; the length of the text if there is none.
std::size_t next_line_start(std::string_view text, std::size_t at);

/// The number, from 1, of the line that holds byte `at`, which must be inside the text.
std::int64_t line_number(std::string_view text, std::size_t at);

}  // namespace engram::data
