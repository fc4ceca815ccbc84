/// `engram prepare --rules`: the corpora of [transformer-xl 6.1], on small files in their formats.

#include <cstdlib>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/word_corpus.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/published_data.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::published_rules_test {

using namespace engram::data;

namespace {

std::vector<std::string> vocabulary_of(const DataSet& data) {
  std::vector<std::string> words;
  for (std::int32_t id = 0; id < data.vocabulary().size(); ++id)
    words.emplace_back(data.vocabulary().words() != nullptr ? data.vocabulary().words()->word(id)
                                                            : data.vocabulary().decode(TokenIds{id}));
  return words;
}

nlohmann::json data_json(const PrepareOptions& options) {
  return nlohmann::json::parse(get_file(options.out / "data.json"));
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("rules: enwik8 loses newlines as published, or keeps its bytes", "[data][transformer-xl][T18]") {
  TemporaryFolder folder;
  PrepareOptions options = three_files(folder, "enwik8", "ab\nc", "c\r\nd", "a\n\n\xc3\xa9 b\n");
  PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].tokens == 3);
  CHECK(summary.splits[0].newlines_dropped == 1);
  CHECK(summary.splits[1].tokens == 3);
  CHECK(summary.splits[2].tokens == 5);
  // Counted on all splits, newline not among them: a 2, b 2, c 2, \r, d, the two bytes of é, and space.
  CHECK(summary.vocabulary_size == 8);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0], ContainsSubstring("newlines are no tokens (1, 1 and 3 bytes"));
  {
    const DataSet data = DataSet::open(options.out);
    CHECK(data.vocabulary().end_token() == -1);
    CHECK(ids_of(data, "train") == TokenIds{0, 1, 2});
    CHECK(vocabulary_of(data) == Words{"a", "b", "c", "\r", "d", "\xc3", "\xa9", " "});
    CHECK(data.vocabulary().decode(ids_of(data, "test")) == "a\xc3\xa9 b");
    CHECK(data_json(options)["rules"] == "enwik8");
    CHECK(data_json(options)["newlines"] == "drop");
    CHECK(data_json(options)["ids"] == "count");
    CHECK(data_json(options)["vocabulary_from"] == "all");
    CHECK(data_json(options)["splits"]["train"]["newlines_dropped"] == 1);
    CHECK(data_json(options)["splits"]["train"]["bytes"] == 4);
  }
  set_named_rules("enwik8-bytes", options);
  summary = prepare(options);
  CHECK(summary.splits[0].tokens == 4);
  CHECK(summary.splits[2].tokens == 8);
  CHECK(summary.vocabulary_size == 9);
  CHECK(summary.notes.empty());
  const DataSet data = DataSet::open(options.out);
  // Newline is the most frequent byte: 1 + 1 + 3.
  CHECK(data.vocabulary().end_token() == 0);
  CHECK(data.vocabulary().decode(ids_of(data, "valid")) == "c\r\nd");
  CHECK(data_json(options)["rules"] == "enwik8-bytes");
}

TEST_CASE("rules: one enwik8 is cut at 90 and 95 percent of its bytes, newlines counted", "[data][transformer-xl]") {
  TemporaryFolder folder;
  PrepareOptions options = options_of(folder, "enwik8");
  std::string text(200, 'x');
  text[10] = text[185] = text[199] = '\n';
  options.text = put_file(folder / "enwik8", text);
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].bytes == 180);
  CHECK(summary.splits[0].tokens == 179);
  CHECK(summary.splits[1].first_byte == 180);
  CHECK(summary.splits[1].tokens == 9);
  CHECK(summary.splits[2].tokens == 9);
  CHECK(summary.vocabulary_size == 1);
  // A piece of the encoder that is nothing but newlines, and one across its border.
  std::string many(100'000, '\n');
  many += std::string(100'000, 'y');
  const PrepareSummary large = prepare(three_files(folder, "enwik8", many, "yy", "yy"));
  CHECK(large.splits[0].tokens == 100'000);
  CHECK(large.splits[0].newlines_dropped == 100'000);
}

TEST_CASE("rules: text8 has 27 tokens and no end token", "[data][transformer-xl]") {
  TemporaryFolder folder;
  PrepareOptions options = three_files(folder, "text8", " the quick brown fox jumps over", "the lazy dog ", " a b ");
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 27);
  CHECK(summary.splits[0].tokens == 30);
  CHECK(summary.splits[0].stripped == 1);
  CHECK(summary.splits[1].tokens == 12);
  CHECK(summary.splits[2].tokens == 3);
  CHECK_FALSE(summary.splits[2].end_appended);
  CHECK(summary.notes.empty());
  const DataSet data = DataSet::open(options.out);
  CHECK(data.vocabulary().end_token() == -1);
  // Of all splits together space is the most frequent, 5 + 2 + 1, then o with 4.
  CHECK(data.vocabulary().encode(" o") == TokenIds{0, 1});
  CHECK(data.vocabulary().decode(ids_of(data, "test")) == "a b");
  CHECK(data_json(options)["rules"] == "text8");
  CHECK(data_json(options)["rule"] == "text8");
}

TEST_CASE("rules: wikitext-103 splits at white space, ends every line, counts train alone",
          "[data][transformer-xl][T18]") {
  TemporaryFolder folder;
  PrepareOptions options = three_files(folder, "wikitext-103", "a  b\n \n",
                                       "b\xc2\xa0"
                                       "a\xe2\x80\xa8"
                                       "a\r\n",
                                       "\xe3\x80\x80"
                                       "a\tb\rb");
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].tokens == 4);
  {
    const DataSet data = DataSet::open(options.out);
    CHECK(words_of(data, "train") == "a b <eos> <eos>");
    CHECK(words_of(data, "valid") == "b a a <eos>");
    CHECK(words_of(data, "test") == "a b <eos> b <eos>");
    CHECK(data.doubled_mark() == -1);
  }
  // <eos> is first though it is the rarest; c and a are tied, and so are D and <unk>: the first one seen is first.
  options = three_files(folder, "wikitext-103", "b b b c a c a D <unk>", "a\n", "<unk> D\n");
  prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(vocabulary_of(data) == Words{"<eos>", "b", "c", "a", "D", "<unk>"});
  const nlohmann::json json = data_json(options);
  CHECK(json["rules"] == "wikitext-103");
  CHECK(json["eos_id"] == "first");
  CHECK(json["ties"] == "first");
  CHECK(json["count_from"] == "train");
  CHECK(json["lower"] == false);
  CHECK(json["sentences"] == "none");
  // The text has an unknown word, and <unk> is an ordinary word all the same.
  options = three_files(folder, "wikitext-103", "a <unk>\n", "a\na odd\n", "a a\n");
  CHECK_THAT(message_of<FileError>([&] { prepare(options); }),
             ContainsSubstring("got 'odd' of valid in line 2 of '") && ContainsSubstring("valid.txt'"));
  options.words.end_of_line = false;
  CHECK_THAT(message_of<UsageError>([&] { prepare(options); }),
             ContainsSubstring("--eos-id first works with --eol keep"));
}

TEST_CASE("rules: ptb is lower-cased and counted on all splits", "[data][transformer-xl]") {
  TemporaryFolder folder;
  const std::string_view train = " the N of n \xc3\x89t\xc3\x89 \n";
  PrepareOptions options = three_files(folder, "ptb", train, " rare n\n", " Rare the\n The \n");
  const PrepareSummary summary = prepare(options);
  // the 3, n 3 (N merged with n), of, what is beyond ASCII as it is, rare 2; <eos> first.
  CHECK(summary.splits[0].tokens == 6);
  CHECK(summary.splits[2].tokens == 5);
  const DataSet data = DataSet::open(options.out);
  CHECK(vocabulary_of(data) == Words{"<eos>", "the", "n", "rare", "of", "\xc3\x89t\xc3\x89"});
  CHECK(words_of(data, "test") == "rare the <eos> the <eos>");
  const nlohmann::json json = data_json(options);
  CHECK(json["rules"] == "ptb");
  CHECK(json["lower"] == true);
  CHECK(json["count_from"] == "all");
  CHECK(json["sources"][0]["hash"] == hash_text(hash_of(train)));  // of the file, not of what was made of it

  const auto splits = [](std::int64_t train_words) {
    std::array<WordSplit, 3> made;
    made[0].words = train_words;
    made[1].words = 73'760;
    made[2].words = 82'430;
    return made;
  };
  CHECK(penn_treebank_note(splits(929'589), 10'000).empty());
  CHECK_THAT(penn_treebank_note(splits(929'590), 10'000), ContainsSubstring("looks like the Penn Treebank"));
  CHECK_THAT(penn_treebank_note(splits(929'589), 9'999), ContainsSubstring("a vocabulary of 9999"));
  CHECK(penn_treebank_note(splits(500'000), 10'000).empty());
}

TEST_CASE("rules: the tokens of the published validation and test files", "[data][transformer-xl]") {
  const char* const asked = std::getenv("ENGRAM_TEST_TEXTS");
  const std::filesystem::path texts = asked != nullptr ? asked : ENGRAM_SOURCE_DIR "/../shared/data";
  struct Corpus {
    const char *rules, *valid, *test;
    std::int64_t valid_tokens, test_tokens;
  };
  for (const Corpus& corpus : {Corpus{"wikitext-103", "wikitext.valid.txt", "wikitext.test.txt", 217'646, 245'569},
                               Corpus{"ptb", "ptb.valid.txt", "ptb.test.txt", 73'760, 82'430}}) {
    if (!std::filesystem::exists(texts / corpus.valid) || !std::filesystem::exists(texts / corpus.test)) {
      WARN("skipped: no " << corpus.valid << " in '" << texts.string() << "'; ENGRAM_TEST_TEXTS names the folder");
      continue;
    }
    TemporaryFolder folder;
    PrepareOptions options = options_of(folder, corpus.rules);
    options.train = options.valid = texts / corpus.valid;
    options.test = texts / corpus.test;
    options.words.unseen = UnseenWords::unk;
    const PrepareSummary summary = prepare(options);
    CHECK(summary.splits[1].tokens == corpus.valid_tokens);
    CHECK(summary.splits[2].tokens == corpus.test_tokens);
  }
}

}  // namespace engram::harness::published_rules_test
