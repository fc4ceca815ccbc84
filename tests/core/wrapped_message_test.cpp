/// Messages are wrapped at words, and nothing of them is changed otherwise.

#include "core/wrapped_message.hpp"

#include "tests/harness/catch.hpp"

namespace engram::wrapped_message_test {

TEST_CASE("wrapped messages: lines that fit stay, longer ones go on two blanks further in") {
  CHECK(wrapped_message("engram: short\n  as  it is", 20) == "engram: short\n  as  it is");
  CHECK(wrapped_message("engram: error: one two three\n  four five six seven", 16) ==
        "engram: error:\n  one two three\n  four five six\n    seven");
  CHECK(wrapped_message("a b\n", 3) == "a b\n");
  CHECK(wrapped_message("aa bb cc dd", 5) == "aa bb\n  cc\n  dd");
}

TEST_CASE("wrapped messages: no word is cut, and without columns nothing is wrapped") {
  CHECK(wrapped_message("in '/a/very/long/path' it is", 10) == "in\n  '/a/very/long/path'\n  it is");
  const std::string line(300, 'x');
  CHECK(wrapped_message(line + " y", 0) == line + " y");
  CHECK(wrapped_message("", 10).empty());
}

TEST_CASE("wrapped messages: a character of several bytes is one column") {
  CHECK(wrapped_message("\u00e9\u00e9\u00e9\u00e9 \u00e9\u00e9", 7) == "\u00e9\u00e9\u00e9\u00e9 \u00e9\u00e9");
  CHECK(wrapped_message("\u00e9\u00e9\u00e9\u00e9 \u00e9\u00e9", 6) == "\u00e9\u00e9\u00e9\u00e9\n  \u00e9\u00e9");
}

}  // namespace engram::wrapped_message_test
