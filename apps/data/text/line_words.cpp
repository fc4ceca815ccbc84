#include "apps/data/text/line_words.hpp"

#include <algorithm>
#include <array>

namespace engram::data {
namespace {

enum class ByteClass : std::uint8_t { letter, space, line_end, lead };  // lead: may begin a longer white space

constexpr std::array<ByteClass, 256> make_classes() {
  std::array<ByteClass, 256> classes{};
  for (const unsigned space : {0x09u, 0x0bu, 0x0cu, 0x1cu, 0x1du, 0x1eu, 0x1fu, 0x20u})
    classes[space] = ByteClass::space;
  for (const unsigned end : {0x0au, 0x0du}) classes[end] = ByteClass::line_end;
  for (const unsigned lead : {0xc2u, 0xe1u, 0xe2u, 0xe3u}) classes[lead] = ByteClass::lead;
  return classes;
}
constexpr std::array<ByteClass, 256> kClasses = make_classes();

ByteClass class_of(char byte) { return kClasses[static_cast<unsigned char>(byte)]; }

/// Bytes of the white space beyond ASCII at the beginning of `rest`, whose first byte may begin one; 0 for a letter.
std::size_t long_space_length(std::string_view rest) {
  const auto byte = [rest](std::size_t i) {
    return i < rest.size() ? static_cast<unsigned>(static_cast<unsigned char>(rest[i])) : 0u;
  };
  const unsigned second = byte(1), third = byte(2);
  switch (byte(0)) {
    case 0xc2:  // U+0085, U+00A0
      return second == 0x85 || second == 0xa0 ? 2 : 0;
    case 0xe1:  // U+1680
      return second == 0x9a && third == 0x80 ? 3 : 0;
    case 0xe2:
      if (second == 0x80)  // U+2000 to U+200A, U+2028, U+2029, U+202F
        return (third >= 0x80 && third <= 0x8a) || third == 0xa8 || third == 0xa9 || third == 0xaf ? 3 : 0;
      return second == 0x81 && third == 0x9f ? 3 : 0;  // U+205F
    default:                                           // 0xe3: U+3000
      return second == 0x80 && third == 0x80 ? 3 : 0;
  }
}

/// Bytes of the line end at `at`, where the text has one.
std::size_t line_end_length(std::string_view text, std::size_t at) {
  return text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
}

}  // namespace

std::size_t white_space_length(std::string_view rest) {
  switch (class_of(rest[0])) {
    case ByteClass::letter:
      return 0;
    case ByteClass::space:
    case ByteClass::line_end:
      return 1;
    default:
      return long_space_length(rest);
  }
}

LineWordReader::Piece LineWordReader::next() {
  for (;;) {
    if (at_ == text_.size()) return Piece::text_end;
    if (class_of(text_[at_]) == ByteClass::line_end) {
      at_ += line_end_length(text_, at_);
      return Piece::line_end;
    }
    const std::size_t space = white_space_length(text_.substr(at_));
    if (space == 0) break;
    at_ += space;
  }
  // Bytes inside a UTF-8 sequence are letters here, so that the word ends at the beginning of a sequence only.
  word_at_ = at_;
  do {
    ++at_;
  } while (at_ < text_.size() &&
           (class_of(text_[at_]) == ByteClass::letter || white_space_length(text_.substr(at_)) == 0));
  return Piece::word;
}

std::int64_t count_words(std::string_view text) {
  using Piece = LineWordReader::Piece;
  LineWordReader reader(text);
  std::int64_t words = 0;
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
    words += piece == Piece::word ? 1 : 0;
  return words;
}

bool is_at_line_start(std::string_view text) { return text.empty() || class_of(text.back()) == ByteClass::line_end; }

std::size_t next_line_start(std::string_view text, std::size_t at) {
  if (at == 0) return 0;
  // From the byte before, which may end a line there; not in the middle of "\r\n".
  const std::size_t end = text.find_first_of("\r\n", at - 1);
  return end == std::string_view::npos ? text.size() : end + line_end_length(text, end);
}

std::int64_t line_number(std::string_view text, std::size_t at) {
  std::int64_t line = 1;
  for (std::size_t start = next_line_start(text, 1); start <= at; start = next_line_start(text, start + 1)) ++line;
  return line;
}

}  // namespace engram::data
