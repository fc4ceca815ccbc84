/// Words written together: rule by rule, in pieces, and split again.

#include "apps/data/text/word_joiner.hpp"

#include <string>
#include <utility>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/penn_words.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::word_joiner_test {

using namespace engram::data;

namespace {

std::string joined(WordJoin join, const std::string& words) {
  WordJoiner joiner(join);
  const std::string known = joiner.add(words);
  return known + joiner.finish();
}

using Texts = std::vector<std::pair<std::string, std::string>>;
void check(WordJoin join, const Texts& texts) {
  for (const auto& [words, text] : texts) {
    CAPTURE(words);
    CHECK(joined(join, words) == text);
    // In pieces of every length it is the same.
    for (std::size_t length = 1; length < words.size(); ++length) {
      WordJoiner joiner(join);
      std::string all;
      for (std::size_t at = 0; at < words.size(); at += length) all += joiner.add(words.substr(at, length));
      REQUIRE(all + joiner.finish() == text);
    }
  }
}

std::string penn_words(std::string_view text) {
  std::string words;
  split_penn_words(text, [&words](std::string_view word) {
    if (!words.empty()) words += ' ';
    words += word;
  });
  return words;
}

/// Sentences as people write them.
const std::vector<std::string>& sentences() {
  static const std::vector<std::string> all{"It's 5,300 dollars (about $5.50 each), isn't it?",
                                            "\"Why?\" she asked, \"I don't know; nobody's been here: not since 1999!\"",
                                            "Mr. Smith's dogs' bowls were 50% full...",
                                            "The well-known U.S. author [sic] came at 10:30 and left.",
                                            "\u201cWhat,\u201d he said, \u00abis that\u2026\u00bb",
                                            "He said 'we will see' and went."};
  return all;
}

}  // namespace

TEST_CASE("joined words: nothing is changed where no rule is known", "[data]") {
  const std::string words = "it 's @-@ ( so ) \n\n  \" a";
  CHECK(joined(WordJoin::spaces, words) == words);
  WordJoiner joiner(WordJoin::spaces);
  CHECK(joiner.add("wo") == "wo");  // at once
}

TEST_CASE("joined words: WikiText", "[data]") {
  check(WordJoin::wikitext,
        {{" = Title = ", "= Title ="},
         {" = = Early life = = ", "== Early life =="},
         {"in 1 @,@ 000 @.@ 5 well @-@ known cases", "in 1,000.5 well-known cases"},
         {"<unk> 's dog ( the \" old \" one ) , isn 't it ?", "<unk>'s dog (the \"old\" one), isn't it?"},
         {"at 10 : 30 ; note : 5 and / or 6 \u2013 7", "at 10:30; note: 5 and/or 6 \u2013 7"},
         {"first \" line\n \" second \"\n\n", "first \"line\n\"second\"\n\n"}});
}

TEST_CASE("joined words: the Penn Treebank, and books of questions", "[data]") {
  check(WordJoin::penn,
        {{"does n't it 's we 've I 'm DON'T ca N'T", "doesn't it's we've I'm DON'T caN'T"},
         {"the market 's $ N fell N % -- no , really ; ( a lot )", "the market's $N fell N% -- no, really; (a lot)"},
         {"`` I see , '' he said .", "``I see,'' he said."},
         {"she said 'em -LRB- so -RRB- !", "she said 'em (so)!"},
         {"the dogs ' and \u2018 cats \u2019 \u2019s", "the dogs' and \u2018cats\u2019\u2019s"}});
}

TEST_CASE("joined words: Moses", "[data]") {
  check(WordJoin::moses, {{"It 's $ 5,300 ( U.S. ) .", "It's $5,300 (U.S.)."},
                          {"wait ... now , o 'clock", "wait... now, o'clock"},
                          {"&quot; A &amp; B &quot; isn &apos;t &#91; c &#93;", "\"A & B\" isn't [c]"},
                          {"well @-@ known", "well-known"},
                          {"o ' the king 's a @ b.org", "o' the king's a@b.org"},
                          {"it \u2019 s", "it\u2019s"}});
}

TEST_CASE("joined words: ordinary text comes back, and splits into the same words", "[data]") {
  const MosesTokenizer moses(MosesRules{});
  for (const std::string& text : sentences()) {
    CHECK(joined(WordJoin::moses, moses.words(text)) == text);
    CHECK(joined(WordJoin::penn, penn_words(text)) == text);
  }
  // Of what is unusual the words come back.
  for (const std::string text : {"a , b ( c)d #5 \" x\" y \"z", "no--yes [ok ] x:y 3 : 4", "'tis 'twas dogs' 'a b'"}) {
    const std::string by_moses = moses.words(text), by_penn = penn_words(text);
    CHECK(moses.words(joined(WordJoin::moses, by_moses)) == by_moses);
    CHECK(penn_words(joined(WordJoin::penn, by_penn)) == by_penn);
  }
}

TEST_CASE("joined words: a word that was shown in half goes on", "[data]") {
  WordJoiner joiner(WordJoin::moses);
  CHECK(joiner.add("the kin").empty() == false);  // "the" is whole
  CHECK(joiner.finish() == " kin");
  CHECK(joiner.add("g") == "");
  CHECK(joiner.finish() == "g");
  CHECK(joiner.add(" 's ") == "'s");
  CHECK(joiner.add("(") == "");
  CHECK(joiner.finish() == " (");
  CHECK(joiner.add(" old ") == "old");
}

TEST_CASE("joined words: data say how, by their rules or by themselves", "[data]") {
  const TemporaryFolder folder;
  const auto of = [&](const PrepareOptions& given) {
    PrepareOptions options = given;
    options.train = options.valid = options.test =
        put_file(folder / "text", "A cat sat on the mat .\n\nIt 's the cat on the mat\n");
    options.out = folder / "data";
    prepare(options);
    const TextRules rules = DataSet::open(options.out).text_rules();
    CHECK(TextRules::parse(rules.json_text()).join == rules.join);
    return rules.join;
  };
  const auto named = [&](std::string_view name) {
    PrepareOptions options;
    set_named_rules(name, options);
    return of(options);
  };
  PrepareOptions words;
  words.kind = TokenKind::word;
  CHECK(of(words) == WordJoin::spaces);
  CHECK(named("wikitext-103") == WordJoin::wikitext);
  CHECK(named("ptb") == WordJoin::penn);
  const auto articles = [&](const ArticleRules& rules) {
    PrepareOptions options = words;
    options.articles = rules;
    return of(options);
  };
  CHECK(articles({}) == WordJoin::penn);
  CHECK(articles({.format = ArticleFormat::file, .pretokenized = true}) == WordJoin::spaces);
  PrepareOptions subwords;
  subwords.kind = TokenKind::subword;
  subwords.subwords.vocabulary = 280;
  CHECK(of(subwords) == WordJoin::spaces);
  subwords.tokenizer.emplace();
  CHECK(of(subwords) == WordJoin::moses);
  subwords.join = WordJoin::wikitext;
  CHECK(of(subwords) == WordJoin::wikitext);
  words.join = WordJoin::moses;
  CHECK(of(words) == WordJoin::moses);
  // Of characters there is nothing to join.
  PrepareOptions characters;
  characters.join = WordJoin::penn;
  CHECK_THROWS_AS(of(characters), UsageError);
  // An earlier version did not say.
  CHECK(TextRules::parse(R"({"lower": false})").join == WordJoin::spaces);
}

}  // namespace engram::harness::word_joiner_test
