/// From files of articles to sentences of words: lines, sentences, punctuation, numbers, and the formats.

#include <algorithm>

#include "apps/data/text/article_text.hpp"
#include "apps/data/text/penn_words.hpp"
#include "apps/data/text/sentences.hpp"
#include "apps/data/text/text_lines.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::article_text_test {

using namespace engram::data;

namespace {

std::vector<std::string> sentences_of(std::string_view text) {
  std::vector<std::string> sentences;
  split_sentences(text, [&](std::string_view sentence) { sentences.emplace_back(sentence); });
  return sentences;
}

/// The words with " | " after each but the last.
std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " | ") + word;
  return line;
}

std::string penn(std::string_view sentence) {
  std::vector<std::string> words;
  split_penn_words(sentence, [&](std::string_view word) { words.emplace_back(word); });
  return joined(words);
}

/// Everything that a sink is told, as lines: "[name]" for an article, "[+name]" for one that goes on.
struct Told final : ArticleSink {
  void begin_article(std::string name, bool goes_on) override { lines += (goes_on ? "[+" : "[") + name + "]\n"; }
  void add_text(std::int64_t more_bytes, std::int64_t more_words) override {
    bytes += more_bytes;
    words += more_words;
  }
  void add_sentence(std::vector<std::string>& sentence) override {
    for (std::size_t i = 0; i < sentence.size(); ++i) lines += (i == 0 ? "" : " ") + sentence[i];
    lines += '\n';
  }
  std::string lines;
  std::int64_t bytes = 0, words = 0;
};

std::string told(std::string_view text, const ArticleRules& rules = {}, bool lower = false) {
  TemporaryFolder folder;
  Told sink;
  read_articles(put_file(folder / "text", text), "text", rules, lower, sink);
  return sink.lines;
}

}  // namespace

TEST_CASE("text lines: ends, a byte order mark, and bytes that are no UTF-8", "[data][articles]") {
  TemporaryFolder folder;
  const std::string bytes =
      "\xef\xbb\xbf"
      "one\r\n\ntw\xffo\xe2\x82\n\xe2\x82\xac\rlast";
  TextLines lines(put_file(folder / "t", bytes));
  std::vector<std::string> read;
  for (std::string line; lines.next(line);) read.push_back(line);
  CHECK(read == std::vector<std::string>{"one", "", "tw\ufffdo\ufffd\ufffd", "\u20ac\rlast"});
  CHECK(lines.replaced() == 3);
  CHECK(lines.number() == 4);
  CHECK(lines.bytes() == std::ssize(bytes));
  CHECK(lines.hash() == hash_of(bytes));
}

TEST_CASE("text lines: a line of a mebibyte is the longest", "[data][articles]") {
  TemporaryFolder folder;
  const std::string longest(TextLines::kLongest, 'x');
  for (const std::string& end : {std::string(), std::string("\n"), std::string("\nmore\n")}) {
    TextLines lines(put_file(folder / "t", "a\n" + longest + end));
    std::string line;
    REQUIRE(lines.next(line));
    REQUIRE(lines.next(line));
    CHECK(line.size() == TextLines::kLongest);
    CHECK(lines.next(line) == (end.size() > 1));

    TextLines longer(put_file(folder / "t", "a\n" + longest + "y" + end));
    REQUIRE(longer.next(line));
    CHECK_THAT(message_of<FileError>([&] { longer.next(line); }), ContainsSubstring("at most 1048576 bytes") &&
                                                                      ContainsSubstring("line 2 of '") &&
                                                                      ContainsSubstring("t'"));
  }
  CHECK_THAT(message_of<FileError>([&] { TextLines(folder / "none"); }), ContainsSubstring("none"));
  CHECK_THAT(message_of<FileError>([&] {
               TextLines lines(folder.path());
               std::string line;
               lines.next(line);
             }),
             ContainsSubstring("directory"));
}

TEST_CASE("sentences end where the rules say", "[data][articles]") {
  using List = std::vector<std::string>;
  CHECK(sentences_of("A cat. It ran! Did it? 3 times.") == List{"A cat.", "It ran!", "Did it?", "3 times."});
  CHECK(sentences_of("  Blank\n ends.\t Next one ") == List{"Blank\n ends.", "Next one"});
  CHECK(sentences_of("He said \"stop.\" Then (I ran.) She \"too!\") 'No'") ==
        List{"He said \"stop.\"", "Then (I ran.)", "She \"too!\")", "'No'"});
  CHECK(sentences_of("He left. \"Why?\" \u201cOh.\u201d \u00c9mile \u00e9tait. \u00e9mile") ==
        List{"He left.", "\"Why?\"", "\u201cOh.\u201d", "\u00c9mile \u00e9tait. \u00e9mile"});
  CHECK(sentences_of("Well... Now?! Yes") == List{"Well...", "Now?!", "Yes"});
  // No ends.
  for (const std::string_view one :
       {"Mr. Smith met Dr. Jones vs. St. Paul.", "by J. R. R. Tolkien and J.R.R. Tolkien", "in the U.S. Army",
        "at 3.5 or a.b.c and x.Y", "see No. 5, p. 7 and Fig. 12", "so it is. but lower", "e.g. This", "the end .) x"})
    CHECK(sentences_of(one) == List{std::string(one)});
  CHECK(sentences_of("Say No. Then go.") == List{"Say No.", "Then go."});
  CHECK(sentences_of("The robots . The end . ") == List{"The robots .", "The end ."});
  CHECK(sentences_of(" \n ").empty());
  CHECK(sentences_of("").empty());
  CHECK(sentences_of(".") == List{"."});
  CHECK(sentences_of(". A") == List{".", "A"});
}

TEST_CASE("punctuation is split off as in the Penn Treebank", "[data][articles]") {
  CHECK(penn("The cat, (old) sat.") == "The | cat | , | ( | old | ) | sat | .");
  CHECK(penn("It's John's; they're, we've, I'll, he'd, I'm.") ==
        "It | 's | John | 's | ; | they | 're | , | we | 've | , | I | 'll | , | he | 'd | , | I | 'm | .");
  CHECK(penn("Don't can\u2019t ISN'T") == "Do | n't | ca | n\u2019t | IS | N'T");
  CHECK(penn("I can't.") == "I | ca | n't | .");
  CHECK(penn("o'clock at James' house, 'tis rock 'n' roll, the '90s") ==
        "o'clock | at | James | ' | house | , | 'tis | rock | 'n' | roll | , | the | '90s");
  CHECK(penn("He said 'stop' and \"go.\"") == "He | said | ' | stop | ' | and | \" | go | . | \"");
  CHECK(penn("Mr. Smith of the U.S. paid $1,000.50 at 10:30, i.e. 50%.") ==
        "Mr. | Smith | of | the | U.S. | paid | $ | 1,000.50 | at | 10:30 | , | i.e. | 50 | % | .");
  CHECK(penn("Wait... what?! AT&T--and a&b; x@y @me #1") ==
        "Wait | ... | what | ? | ! | AT&T | -- | and | a&b | ; | x@y | @ | me | # | 1");
  CHECK(penn("well-known and/or 3-4 [x]{y}<z>") == "well-known | and/or | 3-4 | [ | x | ] | { | y | } | < | z | >");
  CHECK(penn("<unk>, a <unk>. 10 @-@ year 1 @,@ 000") == "<unk> | , | a | <unk> | . | 10 | @-@ | year | 1 | @,@ | 000");
  CHECK(penn("\u201cOui\u201d \u2014 dit-il\u2026") == "\u201c | Oui | \u201d | \u2014 | dit-il | \u2026");
  CHECK(penn("(He ran.)") == "( | He | ran | . | )");
  CHECK(penn("s 's ' .") == "s | 's | ' | .");
  CHECK(penn("etc...") == "etc | ...");
  CHECK(penn("").empty());
  CHECK(penn(" \t ").empty());
}

TEST_CASE("numbers are words of digits and a few marks", "[data][articles]") {
  for (const std::string_view number : {"7", "1999", "1,000.50", "10:30", "3/4", "-5", "+5", "50%", "1@,@000", "1-2"})
    CHECK(is_number(number));
  for (const std::string_view word : {"", "B52", "1990s", "4th", "-", "...", "%", "@-@", "N", "1@2", "x1", "$5"})
    CHECK_FALSE(is_number(word));

  const auto normal = [](std::vector<std::string> words, bool lower, bool keep, bool pretokenized) {
    ArticleWords(lower, keep, pretokenized).normalise(words);
    return joined(words);
  };
  const std::vector<std::string> words{"In",  "1",   "@,@", "000", "@.@", "5",  "<unk>",
                                       "UNK", "@-@", "7",   "@-@", "N",   "B52"};
  CHECK(normal(words, false, false, false) == "In | N | UNK | UNK | @-@ | N | @-@ | N | B52");
  CHECK(normal(words, true, false, true) == "in | N | UNK | UNK | @-@ | N | @-@ | N | b52");
  CHECK(normal(words, true, false, false) == "in | N | UNK | UNK | @-@ | N | @-@ | n | b52");
  CHECK(normal(words, false, true, true) == "In | 1 | @,@ | 000 | @.@ | 5 | UNK | UNK | @-@ | 7 | @-@ | N | B52");
  CHECK(normal({"7", "@,@"}, false, false, false) == "N | @,@");
  CHECK(normal({"@,@", "7"}, false, false, false) == "@,@ | N");
}

TEST_CASE("article text: a file is an article whose lines may be broken anywhere", "[data][articles]") {
  CHECK(told("A cat\nsat. It\r\nran\n\nNo end\n\n\nNext.") == "[text]\nA cat sat .\nIt ran\nNo end\nNext .\n");
  CHECK(told("A cat. It\nran", {.sentence_lines = true}) == "[text]\nA cat. It\nran\n");
  CHECK(told("(a) 'b.' c", {.pretokenized = true}) == "[text]\n(a) 'b.' c\n");
  CHECK(told("A B52 in 1999", {.keep_numbers = true}, true) == "[text]\na b52 in 1999\n");
  CHECK(told(" \n\n") == "[text]\n");
  CHECK(told("") == "[text]\n");
  CHECK(told("= T =\n\nx", {.format = ArticleFormat::file}) == "[text]\n= T =\nx\n");
}

TEST_CASE("article text: documents", "[data][articles]") {
  const std::string two =
      "\n<doc id=\"1\" title=\"A b\">\nOne line\nTwo. Three\n</doc>\n<doc id=\"7\">\n</doc>\n<doc>\nx\n</doc>";
  CHECK(told(two) == "[A b]\nOne line\nTwo .\nThree\n[7]\n[text#3]\nx\n");
  const auto error = [](std::string_view text, ArticleFormat format) {
    return message_of<FileError>([&] { told(text, {.format = format}); });
  };
  CHECK_THAT(error("a\n<doc id=\"1\">", ArticleFormat::doc), ContainsSubstring("got text before it in line 1 of '"));
  CHECK_THAT(error("<doc>\n<doc>\n", ArticleFormat::doc), ContainsSubstring("inside a document in line 2"));
  CHECK_THAT(error("<doc>\nx\n</doc>\n</doc>", ArticleFormat::doc), ContainsSubstring("outside one in line 4"));
  CHECK_THAT(error("<doc>\nx\n", ArticleFormat::doc), ContainsSubstring("must have its </doc>, got none at the end"));
  CHECK_THAT(error("<doc>\nx\n</doc>\ny", ArticleFormat::doc), ContainsSubstring("got text before it in line 4"));
}

TEST_CASE("article text: WikiText", "[data][articles]") {
  const std::string wiki =
      " \n = First one = \n \n The <unk> ran . It was 1 @,@ 000 . \n = = Part = = \n x = \n = = = Deep = = = \n"
      " Let \n = y = \n be \n \n = Second = \n";
  const std::string expected =
      "[First one]\n= First one =\nThe UNK ran .\nIt was N .\n= = Part = =\nx =\n= = = Deep = = =\nLet\n= y =\nbe\n"
      "[Second]\n= Second =\n";
  CHECK(told(wiki, {.pretokenized = true}) == expected);
  CHECK(told(wiki, {.format = ArticleFormat::wikitext, .pretokenized = true}) == expected);
  CHECK_THAT(message_of<FileError>([&] { told("\n\nx\n", {.format = ArticleFormat::wikitext}); }),
             ContainsSubstring("a line ' = Title = '") && ContainsSubstring("line 3"));
}

TEST_CASE("article text: books of the Children's Book Test", "[data][articles][cbt]") {
  const std::string books =
      "_BOOK_TITLE_ : A_Book.txt\nCHAPTER I. One\nHe ran . She did n't .\n12 men\n_BOOK_TITLE_ : B.txt\nAt first\n"
      "CHAPTER 1\nx\nCHAPTER 2\ny\n";
  CHECK(told(books) ==
        "[A_Book.txt]\nCHAPTER I. One\nHe ran . She did n't .\nN men\n[B.txt]\nAt first\nCHAPTER N\nx\n"
        "CHAPTER N\ny\n");
  CHECK(told(books, {.keep_numbers = true, .chapters = true}) ==
        "[A_Book.txt]\n[+A_Book.txt]\nCHAPTER I. One\nHe ran . She did n't .\n12 men\n[B.txt]\nAt first\n[+B.txt]\n"
        "CHAPTER 1\nx\n[+B.txt]\nCHAPTER 2\ny\n");
  CHECK_THAT(message_of<FileError>([&] { told("x\n", {.format = ArticleFormat::cbt}); }),
             ContainsSubstring("begins with _BOOK_TITLE_") && ContainsSubstring("line 1"));
}

TEST_CASE("article text: the mark of sentence ends is no word", "[data][articles]") {
  CHECK_THAT(message_of<FileError>([&] { told("a\n\nb\nc </s> d\n", {.pretokenized = true}); }),
             ContainsSubstring("the paragraph that begins in line 3 of '") && ContainsSubstring("</s>"));
  CHECK_THAT(message_of<FileError>([&] { told("a\nb </s>\n", {.pretokenized = true, .sentence_lines = true}); }),
             ContainsSubstring("the sentence that begins in line 2 of '"));
  CHECK(told("a </s>") == "[text]\na < /s >\n");
}

TEST_CASE("article text: bytes and words of what belongs to articles", "[data][articles]") {
  TemporaryFolder folder;
  Told sink;
  const std::string bytes = "<doc>\nAb c\r\n\nd\xff\n</doc>\n";
  const ArticleFileFacts facts = read_articles(put_file(folder / "t", bytes), "t", {}, false, sink);
  CHECK(facts.bytes == std::ssize(bytes));
  CHECK(facts.hash == hash_of(bytes));
  CHECK(facts.replaced == 1);
  CHECK(sink.words == 3);
  CHECK(sink.bytes == 5 + 5);  // a U+FFFD has three bytes
}

TEST_CASE("article files: a folder by the bytes of its names, all of it", "[data][articles]") {
  TemporaryFolder folder;
  for (const char* below : {"b", "b/a", ".hidden", "empty"}) std::filesystem::create_directories(folder / below);
  for (const char* name : {"b/z.txt", "b/a/1", "a.txt", "B", "\xc3\xa9", ".secret", ".hidden/x", "b.txt"})
    put_file(folder / name, "x");
  std::vector<std::string> names;
  for (const NamedFile& file : article_files(folder.path())) {
    names.push_back(file.name);
    CHECK(get_file(file.path) == "x");
  }
  CHECK(names == std::vector<std::string>{"B", "a.txt", "b.txt", "b/a/1", "b/z.txt", "\xc3\xa9"});
  CHECK(article_files(folder / "b.txt").at(0).name == "b.txt");
  CHECK_THAT(message_of<FileError>([&] { article_files(folder / "empty"); }), ContainsSubstring("got none in '"));
}

}  // namespace engram::harness::article_text_test
