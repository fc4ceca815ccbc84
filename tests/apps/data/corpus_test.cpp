#include "apps/data/text/corpus.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::corpus_test {

using namespace engram::data;

namespace {

Corpus split(std::string bytes, TextRule rule, std::optional<Percentages> percentages = {}, bool exact_bytes = false) {
  return split_text({"t.txt", std::move(bytes)}, rule, percentages, exact_bytes);
}

/// `count` bytes in lines of ten.
std::string lines(std::size_t count) {
  std::string bytes;
  while (bytes.size() < count) bytes += bytes.size() % 10 == 9 ? '\n' : static_cast<char>('a' + bytes.size() % 10);
  return bytes;
}

}  // namespace

TEST_CASE("corpus: enwik8 cuts 90/5/5 and ends every split with the end token", "[data]") {
  const std::string bytes = lines(200);
  const Corpus corpus = split(bytes, TextRule::enwik8);
  CHECK(corpus.splits[0].text == bytes.substr(0, 180));
  CHECK(corpus.splits[1].text == bytes.substr(180, 10));
  CHECK(corpus.splits[2].text == bytes.substr(190));
  CHECK(corpus.splits[2].first_byte == 190);
  for (const Split& part : corpus.splits) CHECK_FALSE(part.end_appended);
  REQUIRE(corpus.notes.size() == 1);
  CHECK_THAT(corpus.notes[0], ContainsSubstring("enwik8 has 100000000 bytes, this file has 200"));

  // 205 bytes: cuts at floor(184.5) = 184 and floor(194.75) = 194, all three inside a line.
  const Corpus uneven = split(lines(205), TextRule::enwik8);
  CHECK(uneven.splits[0].token_count() == 185);
  CHECK(uneven.splits[1].token_count() == 11);
  CHECK(uneven.splits[2].token_count() == 12);
  const Corpus exact = split(lines(205), TextRule::enwik8, {}, true);
  CHECK(exact.splits[0].token_count() == 184);
  CHECK(exact.splits[1].token_count() == 10);
  CHECK(exact.splits[2].token_count() == 11);
}

TEST_CASE("corpus: the published sizes give the published cuts", "[data]") {
  Corpus corpus = split(std::string(99'999'998, 'x') + "\ny", TextRule::enwik8);
  CHECK(corpus.notes.empty());
  CHECK(corpus.splits[0].text.size() == 90'000'000);
  CHECK(corpus.splits[1].text.size() == 5'000'000);
  CHECK(corpus.splits[2].text.size() == 5'000'000);
  CHECK(corpus.splits[0].token_count() == 90'000'001);

  std::string letters(100'000'000, 'x');
  letters[0] = letters[90'000'000] = letters[99'999'999] = ' ';
  corpus = split(std::move(letters), TextRule::text8);
  CHECK(corpus.notes.empty());
  CHECK(corpus.splits[0].token_count() == 90'000'000);
  CHECK(corpus.splits[1].token_count() == 5'000'000);
  CHECK(corpus.splits[2].token_count() == 5'000'000);
}

TEST_CASE("corpus: text8 drops spaces at both ends of a split and adds one end token", "[data]") {
  // 40 bytes: cuts at 36 and 38.
  const Corpus corpus =
      split(" " + std::string(16, 'a') + "  " + std::string(16, 'b') + " " + "cd" + "e ", TextRule::text8);
  CHECK(corpus.splits[0].text == std::string(16, 'a') + "  " + std::string(16, 'b'));
  CHECK(corpus.splits[0].stripped == 2);
  CHECK(corpus.splits[0].first_byte == 1);
  CHECK(corpus.splits[0].token_count() == 35);
  CHECK(corpus.splits[1].text == "cd");
  CHECK(corpus.splits[1].stripped == 0);
  CHECK(corpus.splits[1].token_count() == 3);
  CHECK(corpus.splits[2].text == "e");
  CHECK(corpus.splits[2].token_count() == 2);
}

TEST_CASE("corpus: any splits by percentages or takes three files", "[data]") {
  const Corpus corpus = split(lines(100), TextRule::any, Percentages{70, 20, 10});
  CHECK(corpus.splits[0].text.size() == 70);
  CHECK(corpus.splits[1].text.size() == 20);
  CHECK(corpus.splits[2].text.size() == 10);
  CHECK(corpus.notes.empty());
  // In binary 60.0 + 4.1 is a little below 64.1; the second cut is at 641 all the same.
  const Corpus fractions = split(lines(1000), TextRule::any, Percentages{60.0, 4.1, 35.9});
  CHECK(fractions.splits[0].text.size() == 600);
  CHECK(fractions.splits[1].text.size() == 41);

  const Corpus files = splits_of_files({{{"a", "one\ntwo\n"}, {"b", "one"}, {"c", "two\n"}}}, TextRule::any, false);
  CHECK(files.splits[0].token_count() == 8);
  CHECK(files.splits[1].token_count() == 4);
  CHECK(files.splits[1].end_appended);
  CHECK(files.splits[2].token_count() == 4);
  CHECK(files.splits[2].source == 2);
}

TEST_CASE("corpus: percentages", "[data]") {
  CHECK(parse_percentages("90,5,5") == kUsualPercentages);
  CHECK(parse_percentages("80.5,10,9.5") == Percentages{80.5, 10, 9.5});
  for (const char* wrong : {"", "90", "90,10", "90,5,5,", "90,5,5,0", "90,5,4", "95,5,0", "105,-10,5", "nan,5,5",
                            "a,b,c", "90;5;5", "90,,10", "inf,5,5"})
    CHECK_THAT(message_of<UsageError>([&] { parse_percentages(wrong); }),
               ContainsSubstring("--split must be three positive percentages with the sum 100, got '" +
                                 std::string(wrong) + "'"));
}

TEST_CASE("corpus: rules have names", "[data]") {
  for (const TextRule rule : {TextRule::enwik8, TextRule::text8, TextRule::any})
    CHECK(parse_text_rule(name_of(rule)) == rule);
  CHECK_THAT(message_of<UsageError>([] { parse_text_rule("enwik9"); }),
             ContainsSubstring("must be enwik8, text8 or any, got 'enwik9'"));
}

TEST_CASE("corpus: unusable texts are named", "[data]") {
  const auto file_error = [](std::string bytes, TextRule rule) {
    return message_of<FileError>([&] { split(std::move(bytes), rule); });
  };
  for (const TextRule rule : {TextRule::enwik8, TextRule::text8, TextRule::any})
    CHECK_THAT(file_error("", rule), ContainsSubstring("must not be empty, got 0 bytes in 't.txt'"));
  for (const std::string ending : {"", "\n"}) {
    const std::string message = file_error("only one line" + ending, TextRule::any);
    CHECK_THAT(message, ContainsSubstring("at least two lines, got one line of " + std::to_string(13 + ending.size()) +
                                          " bytes"));
    CHECK_THAT(message, ContainsSubstring("--exact-bytes"));
  }
  CHECK(split(std::string(100, 'a'), TextRule::any, {}, true).splits[0].token_count() == 90);
  const std::string small = file_error("a\nb\nc\nd\n", TextRule::enwik8);
  CHECK_THAT(small, ContainsSubstring("at least 2 tokens") &&
                        ContainsSubstring("got 0 bytes of text for valid from 't.txt' (8 bytes)"));
  // Nothing but spaces is left of valid.
  CHECK_THAT(file_error(std::string(36, 'a') + "  bc", TextRule::text8),
             ContainsSubstring("got 0 bytes of text for valid"));
  CHECK_THAT(file_error("abc Def", TextRule::text8),
             ContainsSubstring("only a-z and spaces, got 'D' (0x44) at byte 4 of 't.txt'") &&
                 ContainsSubstring("--characters any"));
  CHECK_THAT(file_error("abc_def", TextRule::text8), ContainsSubstring("got '_' (0x5f) at byte 3"));
  CHECK_THAT(file_error("abc\n", TextRule::text8), ContainsSubstring("got 0x0a at byte 3"));
  CHECK_THAT(message_of<FileError>([] {
               splits_of_files({{{"a", "one\ntwo\n"}, {"b", ""}, {"c", "x"}}}, TextRule::any, false);
             }),
             ContainsSubstring("must not be empty, got 0 bytes in 'b'"));
}

TEST_CASE("corpus: options that exclude each other", "[data]") {
  CHECK_THAT(message_of<UsageError>([] { split("ab cd", TextRule::text8, {}, true); }),
             ContainsSubstring("--exact-bytes"));
  CHECK_THAT(message_of<UsageError>([] {
               split(lines(100), TextRule::enwik8, Percentages{80, 10, 10});
             }),
             ContainsSubstring("enwik8 splits 90,5,5, got 80,10,10"));
  CHECK_THAT(message_of<UsageError>([] {
               split(lines(100), TextRule::any, Percentages{80, 30, -10});
             }),
             ContainsSubstring("positive with the sum 100, got 80,30,-10"));
  CHECK(split(lines(100), TextRule::enwik8, kUsualPercentages).splits[0].text.size() == 90);
}

}  // namespace engram::harness::corpus_test
