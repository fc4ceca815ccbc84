/// Words of Moses' tokenizer. What they must be was made by its own program, with its own prefixes.

#include <string>
#include <utility>
#include <vector>

#include "apps/data/text/letter_classes.hpp"
#include "apps/data/text/moses_words.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::moses_words_test {

using namespace engram::data;

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

void check_words(const MosesRules& rules, const Lines& lines) {
  const MosesTokenizer tokenizer(rules);
  for (const auto& [line, words] : lines) {
    CAPTURE(line);
    CHECK(tokenizer.words(line) == words);
  }
}

}  // namespace

TEST_CASE("moses: rules, one by one", "[data][product-key]") {
  check_words({},
              {{"", ""},
               {" \t ", ""},
               {"Hello, world!", "Hello , world !"},
               {"It's Mr. Smith's \"dog\" (old).", "It 's Mr. Smith 's \" dog \" ( old ) ."},
               {"a\u00a0b\u3000c\x01\x1f d", "a b c d"},
               // Commas: not between numbers; at the end of a line always.
               {"5,300 a,b 5,b a,5 A,B,C ,,", "5,300 a , b 5 , b a , 5 A , B , C , ,"},
               {"in 1999, 5,", "in 1999 , 5 ,"},
               {"\u2163,\u2163 \u00bd,5", "\u2163,\u2163 \u00bd , 5"},  // Roman four, and one half, which is no digit
               // Dots.
               {"wait... no.. yes", "wait ... no .. yes"},
               {"...start", "... start"},
               {"end....", "end ...."},
               // Full stops.
               {"The U.S. is here. e.g. this", "The U.S. is here. e.g. this"},
               {"He came. She went.", "He came . She went ."},
               {"No. 5 is No. Good", "No. 5 is No . Good"},
               {"Nor I.", "Nor I ."},
               {"Dr.", "Dr ."},
               {"3.5 is 4. Yes", "3.5 is 4 . Yes"},
               {"x. \u00e9t\u00e9", "x. \u00e9t\u00e9"},
               {"x. \u00c9t\u00e9", "x . \u00c9t\u00e9"},
               // Apostrophes.
               {"don't 'tis dogs' 1990's o'clock rock'n'roll", "don 't ' tis dogs ' 1990 's o 'clock rock 'n'roll"},
               {"dogs'", "dogs'"},
               {"it.'", "it . '"},
               {"5'6 '90s ''", "5 ' 6 ' 90s ' '"},
               // Everything else stands apart, letters of any alphabet do not.
               {"a/b@c.d #1 50% \u20ac5", "a / b @ c.d # 1 50 % \u20ac 5"},
               {"na\u00efve \u0394x \u4e2d\u6587", "na\u00efve \u0394x \u4e2d\u6587"},
               {"\u201cx\u201d \u2014 y", "\u201c x \u201d \u2014 y"},
               {"well-known `x` a_b", "well-known `x` a _ b"},
               {"<a href=\"x\">[1] & | b", "< a href = \" x \" > [ 1 ] & | b"}});
}

TEST_CASE("moses: escapes, hyphens and given prefixes", "[data][product-key]") {
  check_words({.escape = true},
              {{"<a> & | 'x' \"y\" [1]", "&lt; a &gt; &amp; &#124; &apos; x &apos; &quot; y &quot; &#91; 1 &#93;"}});
  check_words({.hyphens = true}, {{"well-known 1-2 -3 x- a-b-c --", "well @-@ known 1 @-@ 2 -3 x- a @-@ b @-@ c --"}});
  TemporaryFolder folder;
  const auto path = put_file(folder / "prefixes", "# of a test\n\nzB\r\nlfd #NUMERIC_ONLY#\n");
  const MosesPrefixes prefixes = read_moses_prefixes(path);
  CHECK(prefixes == MosesPrefixes{{"zB"}, {"lfd"}});
  check_words({.prefixes = prefixes}, {{"zB. X lfd. 5 lfd. X Mr. X", "zB. X lfd. 5 lfd . X Mr . X"}});

  const auto error = [&](std::string_view bytes) {
    put_file(path, bytes);
    return message_of<FileError>([&] { read_moses_prefixes(path); });
  };
  CHECK_THAT(error("a\nb c\n"), ContainsSubstring("got 'b c' in line 2 of '" + path.string()));
  CHECK_THAT(error("a\n\xff\n"), ContainsSubstring("UTF-8, got 0xff in line 2 of '"));
  CHECK_THAT(error("# none\n"), ContainsSubstring("of prefixes, got none in '"));
}

TEST_CASE("moses: rules come back from their JSON", "[data]") {
  MosesRules rules{.escape = true};
  CHECK(moses_rules_of(nlohmann::json::parse(json_of(rules).dump())) == rules);
  CHECK_FALSE(json_of(rules).contains("prefixes"));
  rules = {.hyphens = true, .prefixes = {{"a"}, {"b", "c"}}};
  CHECK(moses_rules_of(nlohmann::json::parse(json_of(rules).dump())) == rules);
  nlohmann::json foreign = nlohmann::json::parse(json_of(rules).dump());
  foreign["name"] = "spacy";
  CHECK_THAT(message_of<UsageError>([&] { moses_rules_of(foreign); }),
             ContainsSubstring("must be moses, got \"spacy\""));
}

TEST_CASE("letter classes: the ends of Unicode's blocks", "[data]") {
  CHECK(is_alphabetic(U'z'));
  CHECK_FALSE(is_alphabetic(U'{'));
  CHECK(is_alphabetic(0x00aa));
  CHECK_FALSE(is_alphabetic(0x00d7));  // the multiplication sign
  CHECK(is_alphabetic(0x0345));        // a mark that is Other_Alphabetic
  CHECK_FALSE(is_alphabetic(0x0301));  // one that is not
  CHECK(is_alphabetic(0x2163));        // Roman four
  CHECK(is_numeric(0x2163));
  CHECK(is_alphanumeric(0x0663));  // an Arabic digit
  CHECK_FALSE(is_alphabetic(0x0663));
  CHECK_FALSE(is_alphanumeric(0x00bd));  // one half
  CHECK(is_numeric(0x00bd));
  CHECK(is_lowercase(0x00aa));
  CHECK_FALSE(is_lowercase(0x0130));
  CHECK_FALSE(is_alphabetic(0x10ffff));
  CHECK(is_white_space(0x3000));
  CHECK_FALSE(is_white_space(0x200b));
}

}  // namespace engram::harness::moses_words_test
