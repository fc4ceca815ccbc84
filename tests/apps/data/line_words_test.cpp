/// Splitting UTF-8 into lines and words, against a plain definition over code points, and the table of words.

#include <set>
#include <string>
#include <vector>

#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/word_table.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::line_words_test {

using namespace engram::data;

namespace {

using Lines = std::vector<std::vector<std::string>>;

/// What str.split() of Python separates words by.
const std::set<unsigned>& white_space() {
  static const std::set<unsigned> all = [] {
    std::set<unsigned> made{0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    for (unsigned c = 0x09; c <= 0x0d; ++c) made.insert(c);
    for (unsigned c = 0x1c; c <= 0x20; ++c) made.insert(c);
    for (unsigned c = 0x2000; c <= 0x200a; ++c) made.insert(c);
    return made;
  }();
  return all;
}

std::string utf8(unsigned code) {
  const auto byte = [](unsigned value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)), byte(0x80 | (code >> 6 & 0x3f)),
          byte(0x80 | (code & 0x3f))};
}

/// Lines of words of code points; the last line is what follows the last line end, and may be empty.
Lines plain_lines(const std::vector<unsigned>& codes) {
  Lines lines(1);
  bool in_word = false;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == '\r' && i + 1 < codes.size() && codes[i + 1] == '\n') continue;  // the second one ends the line
    if (codes[i] == '\n' || codes[i] == '\r') lines.emplace_back();
    if (white_space().contains(codes[i])) {
      in_word = false;
      continue;
    }
    if (!in_word) lines.back().emplace_back();
    in_word = true;
    lines.back().back() += utf8(codes[i]);
  }
  return lines;
}

Lines read_lines(std::string_view text) {
  Lines lines(1);
  LineWordReader reader(text);
  using Piece = LineWordReader::Piece;
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next()) {
    if (piece == Piece::line_end) {
      lines.emplace_back();
      continue;
    }
    lines.back().emplace_back(reader.word());
    CHECK(text.substr(reader.word_at(), reader.word().size()) == reader.word());
  }
  return lines;
}

}  // namespace

TEST_CASE("words: split at every white space that Python knows, and at nothing else", "[data]") {
  std::vector<unsigned> wrong;
  for (unsigned code = 1; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const std::string text = "a" + utf8(code) + "b";
    LineWordReader reader(text);
    reader.next();
    if ((reader.word() == "a") != white_space().contains(code)) wrong.push_back(code);
  }
  CHECK(wrong.empty());
}

TEST_CASE("words: lines end at \\n, \\r\\n and a lone \\r and nowhere else", "[data]") {
  CHECK(read_lines("a b\nc\r\nd\re") == Lines{{"a", "b"}, {"c"}, {"d"}, {"e"}});
  CHECK(read_lines("\n\n") == Lines{{}, {}, {}});
  CHECK(read_lines("\r\r\n\n\r") == Lines{{}, {}, {}, {}, {}});
  // Form feed, vertical tab, file separator, next line, line separator and paragraph separator.
  CHECK(read_lines("a\x0c"
                   "b\x0b"
                   "c\x1c"
                   "d\xc2\x85"
                   "e\xe2\x80\xa8"
                   "f\xe2\x80\xa9"
                   "g") == Lines{{"a", "b", "c", "d", "e", "f", "g"}});
  CHECK(read_lines("") == Lines{{}});
  CHECK(read_lines(" = Title = \n \n It 's @-@ <unk> .") ==
        Lines{{"=", "Title", "="}, {}, {"It", "'s", "@-@", "<unk>", "."}});
}

TEST_CASE("words: random texts split as by the definition over code points", "[data]") {
  reference::RandomArrays random(3);
  const std::vector<unsigned> alphabet{'a',    'b',    'Z',    '\n',   '\r',   ' ',    0x1c,   0x85,   0xa0,
                                       0xa1,   0xc2,   0xe2,   0x1680, 0x1681, 0x2000, 0x200a, 0x200b, 0x2028,
                                       0x202f, 0x2030, 0x205f, 0x3000, 0x3001, 0xfeff, 0x1f600};
  for (int round = 0; round < 2000; ++round) {
    std::vector<unsigned> codes(static_cast<std::size_t>(random.below(24)));
    std::string text;
    for (unsigned& code : codes)
      text += utf8(code = alphabet[static_cast<std::size_t>(random.below(std::ssize(alphabet)))]);
    REQUIRE(read_lines(text) == plain_lines(codes));
    CHECK(is_at_line_start(text) == (codes.empty() || codes.back() == '\n' || codes.back() == '\r'));
    // Line starts and line numbers by counting line ends.
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool between = at > 0 && text[at - 1] == '\r' && text[at] == '\n';
      if (!between) CHECK(line_number(text, at) == std::ssize(read_lines(text.substr(0, at))));
      const std::size_t start = next_line_start(text, at);
      CHECK(start >= at);
      CHECK((start == text.size() || is_at_line_start(text.substr(0, start))));
      if (start < text.size()) CHECK_FALSE((text[start] == '\n' && start > 0 && text[start - 1] == '\r'));
    }
  }
}

TEST_CASE("utf8: the first byte that begins no well-formed sequence is found", "[data]") {
  CHECK(find_invalid_utf8("") == 0);
  const auto found = [](const std::string& wrong) {
    return find_invalid_utf8("0123456789" + wrong + "tail of the text");
  };
  for (unsigned code = 1; code <= 0x10ffff; code = code < 0x900 ? code + 1 : code + 0x3f) {
    const std::string text = "word " + utf8(code) + " word";
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    REQUIRE(find_invalid_utf8(text) == (surrogate ? 5 : text.size()));
  }
  for (const char* wrong : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
                            "\xe2\x82", "\xe2(\xa1", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff"}) {
    INFO(wrong);
    CHECK(found(wrong) == 10);
  }
  CHECK(found("\xf4\x8f\xbf\xbf") == 30);
  // Cut in the middle of a sequence.
  CHECK(find_invalid_utf8("ab\xe2\x82\xac") == 5);
  CHECK(find_invalid_utf8("ab\xe2\x82") == 2);
  CHECK(find_invalid_utf8("ab\xe2") == 2);
}

TEST_CASE("word table: ids go by addition, whatever the number of words", "[data]") {
  WordTable table;
  CHECK(table.size() == 0);
  CHECK(table.find("w0") == -1);
  constexpr std::int32_t kWords = 20'000;
  for (std::int32_t i = 0; i < kWords; ++i) REQUIRE(table.add("w" + std::to_string(i)) == i);
  for (std::int32_t i = 0; i < kWords; ++i) {
    REQUIRE(table.find("w" + std::to_string(i)) == i);
    REQUIRE(table.add("w" + std::to_string(i)) == i);
    REQUIRE(table[i] == "w" + std::to_string(i));
  }
  CHECK(table.size() == kWords);
  CHECK(table.find("w") == -1);
  CHECK(table.find("w20000") == -1);
}

}  // namespace engram::harness::line_words_test
