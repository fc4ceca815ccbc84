/// Messages with what others wrote in them: a terminal gets text, and not too much of it.

#include "core/message_text.hpp"

#include <string>

#include "core/error.hpp"
#include "core/utf8_sequence.hpp"
#include "tests/harness/catch.hpp"

namespace engram::message_text_test {
namespace {

TEST_CASE("message text: text stays as it is", "[errors]") {
  for (const std::string plain :
       {"", "safetensors: 'a.bin': it must have a header\n  got none", "é ß 数 🙂 \xc2\xa0"})
    CHECK(message_text(plain) == plain);
}

TEST_CASE("message text: what moves a cursor, and bytes that are no text, are escaped", "[errors]") {
  CHECK(message_text("a\x1b[2Jb") == "a\\x1b[2Jb");
  CHECK(message_text(std::string("nul\0.", 5)) == "nul\\x00.");
  CHECK(message_text("\r\t\x7f") == "\\x0d\\x09\\x7f");
  CHECK(message_text("csi \xc2\x9b") == "csi \\xc2\\x9b");
  CHECK(message_text("\xff\xc3 \xed\xa0\x80") == "\\xff\\xc3 \\xed\\xa0\\x80");
  CHECK(std::string(FileError("file: no tensor '\x1b]0;title\x07'").what()) == "file: no tensor '\\x1b]0;title\\x07'");
}

TEST_CASE("message text: long names and long lists are cut, and it says so", "[errors]") {
  const std::string name(100'000, 'n'), shown = message_text("no tensor '" + name + "'\n  got 3");
  CHECK(shown.size() < kLongestMessageLine + 20);
  CHECK(shown.starts_with("no tensor 'nnn"));
  CHECK(shown.ends_with("nnn'\n  got 3"));
  CHECK_THAT(shown, Catch::Matchers::ContainsSubstring("nnn...(959"));
  CHECK_THAT(shown, Catch::Matchers::ContainsSubstring(" bytes are left out)...nnn"));
  // No character is cut in two.
  std::string letters;
  for (int i = 0; i < 5'000; ++i) letters += "数";
  for (const std::string before : {"", "a", "ab"}) {
    const std::string cut = message_text(before + letters);
    CHECK(message_text(cut) == cut);
    CHECK(cut.size() <= kLongestMessageLine);
  }
  std::string list;
  for (int i = 0; i < 20'000; ++i) list += "a line of a list\n";
  const std::string listed = message_text(list);
  CHECK(listed.size() <= kLongestMessage);
  CHECK(listed.ends_with(" bytes more)"));
}

}  // namespace
}  // namespace engram::message_text_test
