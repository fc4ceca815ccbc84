/// The vocabulary of words: the order of ids, line ends, rare words, hash and file.

#include <algorithm>
#include <map>

#include "apps/data/files/hash.hpp"
#include "apps/data/vocabulary/collected_words.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::word_vocabulary_test {

using namespace engram::data;

namespace {

using Ids = std::vector<std::int32_t>;
using Words = std::vector<std::string>;

WordCorpus corpus_of(const std::string& train, bool end_of_line = true) {
  return lines_of_files({{{"train.txt", train}, {"valid.txt", "a a a\n"}, {"test.txt", "a a a\n"}}}, end_of_line);
}

CollectedWords collect(const std::string& train, const WordRules& rules = {}) {
  return collect_words(corpus_of(train, rules.end_of_line).splits[0], rules);
}

WordVocabulary vocabulary_of(const std::string& train, const WordRules& rules = {}) {
  return collect(train, rules).vocabulary;
}

Words words_of(const WordVocabulary& vocabulary) {
  Words words;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) words.emplace_back(vocabulary.word(id));
  return words;
}

/// The order of ids by its definition: a list of all tokens, counted and sorted.
Words plain_order(const Words& tokens, bool later) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> seen;  // count, place of the first
  for (std::size_t i = 0; i < tokens.size(); ++i)
    ++seen.try_emplace(tokens[i], 0, static_cast<std::int64_t>(i)).first->second.first;
  Words order;
  for (const auto& [word, facts] : seen) order.push_back(word);
  std::ranges::sort(order, [&](const std::string& a, const std::string& b) {
    const auto [count_a, first_a] = seen.at(a);
    const auto [count_b, first_b] = seen.at(b);
    if (count_a != count_b) return count_a > count_b;
    return later ? first_a > first_b : first_a < first_b;
  });
  return order;
}

const WordRules kFirst{.ties = TieOrder::first};

}  // namespace

TEST_CASE("word vocabulary: ids go by decreasing count, and ties by the rule", "[data]") {
  // Counts: b 3, <eos> 2, a 2, c 1, d 1; a is seen before the first line ends.
  const std::string text = "a b c\nb d b a\n";
  CHECK(words_of(vocabulary_of(text)) == Words{"b", "<eos>", "a", "d", "c"});
  CHECK(words_of(vocabulary_of(text, kFirst)) == Words{"b", "a", "<eos>", "c", "d"});
  // The rule is decided by where a word is seen first, not by where it is seen last.
  CHECK(words_of(vocabulary_of("x y z y z x\n")) == Words{"z", "y", "x", "<eos>"});
  CHECK(words_of(vocabulary_of("x y z y z x\n", kFirst)) == Words{"x", "y", "z", "<eos>"});
}

TEST_CASE("word vocabulary: random texts are ordered as by the definition", "[data]") {
  reference::RandomArrays random(5);
  for (const bool later : {true, false}) {
    for (int round = 0; round < 50; ++round) {
      Words tokens;
      std::string text;
      for (int i = 0; i < 60; ++i) {
        if (i % 7 == 6) {
          tokens.emplace_back("<eos>");
          text += '\n';
          continue;
        }
        tokens.push_back("w" + std::to_string(random.below(1 + random.below(20))));
        text += tokens.back() + " ";
      }
      tokens.emplace_back("<eos>");  // of the last line, which has no line end
      CHECK(words_of(vocabulary_of(text, {.ties = later ? TieOrder::later : TieOrder::first})) ==
            plain_order(tokens, later));
    }
  }
}

TEST_CASE("word vocabulary: line ends are tokens or not, after every line", "[data]") {
  const std::string text = "a\n\n \r\nb\ra";
  const WordVocabulary kept = vocabulary_of(text);
  // a, blank, blank, b, a: five lines.
  CHECK(words_of(kept) == Words{"<eos>", "a", "b"});
  CHECK(kept.end_token() == 0);
  CHECK(kept.encode(text) == Ids{1, 0, 0, 0, 2, 0, 1});
  CHECK(kept.encode("a b") == Ids{1, 2});
  const WordVocabulary dropped = vocabulary_of(text, {.end_of_line = false});
  CHECK(words_of(dropped) == Words{"a", "b"});
  CHECK(dropped.end_token() == -1);
  CHECK(dropped.encode(text) == Ids{0, 1, 0});
  // Written out, "<eos>" is a line end where line ends are tokens, and a word where not.
  CHECK(vocabulary_of("a <eos> b\n").encode("a <eos> b\n") == vocabulary_of("a <eos> b\n").encode("a\nb\n"));
  const WordVocabulary literal = vocabulary_of("a <eos> b\n", {.end_of_line = false});
  CHECK(literal.end_token() == -1);
  CHECK(literal.decode(literal.encode("a <eos> b")) == "a <eos> b");
}

TEST_CASE("word vocabulary: rare words are replaced as if in the text beforehand", "[data]") {
  // a 3, b 2, <eos> 2, c 1, d 1.
  const std::string text = "a b c a\nd b a\n";
  const CollectedWords collected = collect(text, {.min_count = 2});
  CHECK(words_of(collected.vocabulary) == words_of(vocabulary_of("a b <unk> a\n<unk> b a\n")));
  CHECK(collected.rare_tokens == 2);
  CHECK(collected.rare.find("c") >= 0);
  CHECK(collected.rare.find("d") >= 0);
  CHECK(collected.rare.find("a") == -1);
  CHECK_FALSE(collected.unknown_added);
  // "<unk>" and "<eos>" are never rare themselves.
  CHECK(words_of(vocabulary_of("a b <unk> a b a\n", {.min_count = 3})) ==
        words_of(vocabulary_of("a <unk> <unk> a <unk> a\n")));
  CHECK(words_of(vocabulary_of("a a a a <unk> b\n", {.min_count = 4})) == Words{"a", "<unk>", "<eos>"});
  CHECK(words_of(vocabulary_of("a a\n", {.min_count = 2})) == Words{"a", "<eos>"});

  const CollectedWords added = collect("a a b\n", {.unseen = UnseenWords::unk});
  CHECK(added.unknown_added);
  CHECK(words_of(added.vocabulary) == Words{"a", "<eos>", "b", "<unk>"});
  CHECK(words_of(vocabulary_of("a a b\n", {.ties = TieOrder::first, .unseen = UnseenWords::unk})).back() == "<unk>");
  CHECK_FALSE(collect("a a <unk>\n", {.unseen = UnseenWords::unk}).unknown_added);
  CHECK_THAT(message_of<UsageError>([] { collect("a a\n", {.min_count = 0}); }),
             ContainsSubstring("--min-count must be at least 1, got 0"));
}

TEST_CASE("word vocabulary: texts come back, with one space between words", "[data]") {
  const std::string text = " = Title = \n \n It 's   @-@ <unk> \xc2\xa0 .\r\nno end";
  const WordVocabulary vocabulary = vocabulary_of(text);
  const std::string shown = "= Title =\n\nIt 's @-@ <unk> .\nno end";
  const Ids ids = vocabulary.encode(text);
  CHECK(vocabulary.decode(ids) == shown);
  CHECK(vocabulary.encode(shown) == ids);
  // Cut anywhere, the pieces follow each other.
  for (std::size_t cut = 0; cut <= ids.size(); ++cut) {
    const std::span<const std::int32_t> all(ids);
    const std::int32_t before = cut == 0 ? -1 : ids[cut - 1];
    CHECK(vocabulary.decode(all.first(cut)) + vocabulary.decode(all.subspan(cut), before) == shown);
  }
  CHECK(vocabulary.decode(Ids{vocabulary.id_of("It")}, vocabulary.end_token()) == "It");
  const WordVocabulary dropped = vocabulary_of("a b\nc\n", {.end_of_line = false});
  CHECK(dropped.decode(dropped.encode("a b\nc\n")) == "a b c");
}

TEST_CASE("word vocabulary: errors of encoding and decoding", "[data]") {
  const WordVocabulary vocabulary = vocabulary_of("a a b\n");
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.encode("a b\nB a"); }),
             ContainsSubstring("one of the 3 that the vocabulary has, got 'B' at byte 4"));
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.encode("a \xff"); }),
             ContainsSubstring("must be UTF-8, got 0xff at byte 2"));
  CHECK_THAT(message_of<UsageError>([&] {
               vocabulary.decode(Ids{0, 3});
             }),
             ContainsSubstring("from 0 to 2, got 3 at position 1"));
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.decode(Ids{-1}); }), ContainsSubstring("got -1 at position 0"));
  CHECK(message_of<UsageError>([&] { vocabulary.encode("x", UnseenWords::unk); }) != "");
  const WordVocabulary with_unknown = vocabulary_of("a a b <unk>\n");
  const std::int32_t unknown = with_unknown.unknown_token();
  CHECK(with_unknown.encode("a x\n", UnseenWords::unk) ==
        Ids{with_unknown.id_of("a"), unknown, with_unknown.end_token()});

  const Vocabulary either(with_unknown);
  CHECK(either.kind() == TokenKind::word);
  CHECK_FALSE(either.find_unknown("a b\n<unk>").has_value());
  REQUIRE(either.find_unknown("a b\nno a").has_value());
  CHECK(either.find_unknown("a b\nno a")->what == "'no'");
  CHECK(either.find_unknown("a b\nno a")->at == 4);
  CHECK(either.find_unknown("a \xc3(")->what == "0xc3");
}

TEST_CASE("word vocabulary: the hash tells words, order and line ends apart and nothing else", "[data]") {
  const std::uint64_t hash = vocabulary_of("a a a b b\n").hash();
  CHECK(vocabulary_of("b a a a a b b\n").hash() == hash);
  CHECK(vocabulary_of("a a a b b\n").source_hash() != vocabulary_of("b a a a a b b\n").source_hash());
  CHECK(vocabulary_of("a a a b b\n").source_hash() != vocabulary_of("a a a b b\n", kFirst).source_hash());
  CHECK(vocabulary_of("b b b a a\n").hash() != hash);
  CHECK(vocabulary_of("a a a b b c\n").hash() != hash);
  CHECK(vocabulary_of("a a a b b\n", {.end_of_line = false}).hash() != hash);
  CHECK(vocabulary_of("aa aa aa b b\n").hash() != vocabulary_of("a a a ab ab\n").hash());
  // The same entries; line ends are tokens in one of them only.
  CHECK(vocabulary_of("a a <eos>\n").hash() != vocabulary_of("a a <eos>", {.end_of_line = false}).hash());
}

TEST_CASE("word vocabulary: the file comes back whole", "[data]") {
  TemporaryFolder folder;
  for (const bool end_of_line : {true, false}) {
    const WordVocabulary vocabulary =
        vocabulary_of("a \"b\" \\ \xc3\xa9t\xc3\xa9 \x01 <unk> a\n", {.end_of_line = end_of_line});
    const Vocabulary loaded = Vocabulary::load(put_file(folder / "v.json", vocabulary.json_text()));
    REQUIRE(loaded.words() != nullptr);
    CHECK(loaded.kind() == TokenKind::word);
    CHECK(loaded.size() == vocabulary.size());
    CHECK(loaded.hash() == vocabulary.hash());
    CHECK(loaded.source_hash() == vocabulary.source_hash());
    CHECK(loaded.end_token() == vocabulary.end_token());
    CHECK(words_of(*loaded.words()) == words_of(vocabulary));
    CHECK(loaded.json_text() == vocabulary.json_text());
    CHECK(Vocabulary(loaded).encode("a <unk>") == vocabulary.encode("a <unk>"));
  }
}

TEST_CASE("word vocabulary: damaged files are refused", "[data]") {
  TemporaryFolder folder;
  const std::string good = vocabulary_of("a a b\n").json_text();
  const auto with = [&](const std::string& from, const std::string& to) {
    REQUIRE(good.find(from) != std::string::npos);
    return message_of<FileError>(
        [&] { Vocabulary::parse(std::string(good).replace(good.find(from), from.size(), to), folder / "v.json"); });
  };
  const std::string words = R"(["a","<eos>","b"])";
  CHECK(with(words, words).empty());
  CHECK_THAT(with(words, R"(["<eos>","a","b"])"), ContainsSubstring("got the hash"));
  CHECK_THAT(with(words, R"(["a","<eos>","c"])"), ContainsSubstring("got the hash"));
  CHECK_THAT(with(words, R"(["a","<eos>","a"])"), ContainsSubstring("got 'a' twice"));
  CHECK_THAT(with(words, R"(["a","<eos>","b c"])"), ContainsSubstring("got 'b c', which is not one word"));
  CHECK_THAT(with(words, R"(["a","<eos>"," b"])"), ContainsSubstring("not one word"));
  CHECK_THAT(with(words, R"(["a","<eos>","b\n"])"), ContainsSubstring("not one word"));
  CHECK_THAT(with(words, R"(["a","<eos>",""])"), ContainsSubstring("not one word"));
  CHECK_THAT(with(words, R"(["a","b"])"), ContainsSubstring("got no '<eos>'"));
  CHECK_THAT(with(words, "[]"), ContainsSubstring("got none"));
  CHECK_THAT(with(words, "[7]"), ContainsSubstring("got this: "));
  CHECK_THAT(with(words, "7"), ContainsSubstring("v.json"));
  CHECK_THAT(with("\"end_of_line\":true", "\"end_of_line\":false"), ContainsSubstring("got the hash"));
  CHECK_THAT(with("\"source_hash\":\"fnv1a64", "\"source_hash\":\"x"), ContainsSubstring("got the source hash 'x"));
  CHECK_THAT(with("\"version\":1", "\"version\":2"), ContainsSubstring("must be of version 1, got 2"));
  CHECK_THAT(with("\"words\":", "\"word\":"), ContainsSubstring("got this: "));
}

}  // namespace engram::harness::word_vocabulary_test
