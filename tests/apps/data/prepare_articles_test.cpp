/// `engram prepare --kind word --articles` from files to a data folder that knows where articles start.

#include <cstring>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::prepare_articles_test {

using namespace engram::data;

namespace {

using Ids = std::vector<std::int32_t>;
using Starts = std::vector<std::int64_t>;
using List = std::vector<std::string>;

constexpr std::string_view kFirst = "The cat sat. The\ncat ran!\n\nIt ran.\n", kSecond = "In 1999 it cost $1,000.\n";

/// Folders train, valid and test with the corpus of the rules' example: two articles, one and one.
struct SmallCorpus : TemporaryFolder {
  SmallCorpus() {
    for (const char* name : {"all/train", "all/valid", "all/test"}) std::filesystem::create_directories(*this / name);
    put_file(*this / "all/train/1.txt", kFirst);
    put_file(*this / "all/train/2.txt", kSecond);
    put_file(*this / "all/valid/c", "The dog ran.");
    put_file(*this / "all/test/d", "UNK <unk> N.");
  }
  PrepareOptions options(const ArticleRules& rules = {}) const {
    PrepareOptions made;
    made.kind = TokenKind::word;
    made.articles = rules;
    made.articles->paths = {*this / "all"};
    made.out = *this / "data";
    return made;
  }
};

Ids ids_of(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  Ids ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return ids;
}

Starts starts_of(const DataSet& data, std::string_view split) {
  const auto starts = data.articles(split);
  return {starts.begin(), starts.end()};
}

List vocabulary_of(const DataSet& data) {
  List words;
  for (std::int32_t id = 0; id < data.vocabulary().size(); ++id)
    words.emplace_back(data.vocabulary().words()->word(id));
  return words;
}

template <class Expected>
std::string prepare_error(const PrepareOptions& options) {
  return message_of<Expected>([&] { prepare(options); });
}

}  // namespace

TEST_CASE("prepare articles: tokens, vocabulary and starts of a small corpus", "[data][articles]") {
  const SmallCorpus corpus;
  const PrepareSummary summary = prepare(corpus.options());
  const DataSet data = DataSet::open(corpus / "data");
  // The cat sat . </s> The cat ran ! </s> It ran . </s> and In N it cost $ N . </s>: by count, then by bytes.
  CHECK(vocabulary_of(data) ==
        List{"</s>", ".", "N", "The", "cat", "ran", "!", "$", "In", "It", "cost", "it", "sat", "UNK"});
  CHECK(ids_of(data, "train") == Ids{3, 4, 12, 1, 0, 3, 4, 5, 6, 0, 9, 5, 1, 0, 8, 2, 11, 10, 7, 2, 1, 0});
  CHECK(ids_of(data, "valid") == Ids{3, 13, 5, 1, 0});
  CHECK(ids_of(data, "test") == Ids{13, 13, 2, 1, 0});
  CHECK(starts_of(data, "train") == Starts{0, 14});
  CHECK(starts_of(data, "valid") == Starts{0});
  CHECK(starts_of(data, "test") == Starts{0});
  CHECK(data.article_start_token() == 0);
  CHECK(data.vocabulary().end_token() == 0);
  CHECK(data.vocabulary().words()->unknown_token() == 13);
  REQUIRE(data.article_rules());
  CHECK(data.article_rules()->format == ArticleFormat::automatic);
  CHECK(data.article_rules()->sentence_end);
  CHECK_FALSE(data.lower());
  CHECK(data.vocabulary().decode(ids_of(data, "valid")) == "The UNK ran .\n");

  CHECK(summary.splits[0].articles == 2);
  CHECK(summary.splits[0].tokens == 22);
  CHECK(summary.splits[0].end_tokens == 4);
  CHECK(summary.splits[0].words == 8 + 5);
  CHECK(summary.splits[0].bytes == std::ssize(kFirst) - 1 + std::ssize(kSecond));  // without the blank line
  CHECK(summary.splits[1].unknown == 1);
  CHECK(summary.splits[1].coverage() == Approx(0.8));
  CHECK(summary.splits[2].coverage() == Approx(0.6));
  CHECK_THAT(summary.notes.at(1),
             ContainsSubstring("covers 100.00% of the tokens of train, 80.00% of valid and 60.00% of test"));
  // Words and tokens are different things, so no loss is one of the text's bytes.
  CHECK(data.text_amount("train")->words == 13);
  CHECK(data.text_amount("train")->bytes == 0);
}

TEST_CASE("prepare articles: the vocabulary's size, rare words, case, numbers and no sentence ends",
          "[data][articles]") {
  const SmallCorpus corpus;
  const auto made = [&](const ArticleRules& rules, const auto& change) {
    PrepareOptions options = corpus.options(rules);
    change(options);
    prepare(options);
    return DataSet::open(options.out);
  };
  const auto nothing = [](PrepareOptions&) {};
  {
    const DataSet data = made({.words = 8}, nothing);
    // $ In It cost it sat are six.
    CHECK(vocabulary_of(data) == List{"UNK", "</s>", ".", "N", "The", "cat", "ran", "!"});
    CHECK(ids_of(data, "train") == Ids{4, 5, 0, 2, 1, 4, 5, 6, 7, 1, 0, 6, 2, 1, 0, 3, 0, 0, 0, 3, 2, 1});
    CHECK(ids_of(data, "valid") == Ids{4, 0, 6, 2, 1});
    CHECK(data.article_start_token() == 1);
    CHECK(data.article_rules()->words == 8);
  }
  CHECK(vocabulary_of(made({.words = 4}, nothing)) == List{"UNK", "</s>", ".", "N"});
  CHECK(vocabulary_of(made({.words = 100}, nothing)).size() == 14);
  CHECK(vocabulary_of(made({}, [](PrepareOptions& options) { options.words.min_count = 2; })) ==
        List{"UNK", "</s>", ".", "N", "The", "cat", "ran"});
  {
    const DataSet data = made({}, [](PrepareOptions& options) { options.words.lower = true; });
    CHECK(vocabulary_of(data) ==
          List{"</s>", ".", "N", "cat", "it", "ran", "the", "!", "$", "cost", "in", "sat", "UNK"});
    CHECK(data.lower());
  }
  CHECK(vocabulary_of(made({.keep_numbers = true}, nothing)) ==
        List{"</s>", ".", "The", "cat", "ran", "!", "$", "1,000", "1999", "In", "It", "cost", "it", "sat", "N", "UNK"});
  {
    const DataSet data = made({.sentence_end = false}, nothing);
    CHECK(vocabulary_of(data) ==
          List{".", "N", "The", "cat", "ran", "!", "$", "In", "It", "cost", "it", "sat", "</s>", "UNK"});
    CHECK(ids_of(data, "train") == Ids{2, 3, 11, 0, 2, 3, 4, 5, 8, 4, 0, 7, 1, 10, 9, 6, 1, 0});
    CHECK(starts_of(data, "train") == Starts{0, 11});
    CHECK(data.vocabulary().end_token() == -1);
    CHECK(data.article_start_token() == 12);  // still what an article begins with
  }
  {
    const DataSet data = made({.pretokenized = true, .sentence_lines = true}, nothing);
    // The cat sat. The </s> cat ran! </s> It ran. </s> and In N it cost $1,000. </s>
    CHECK(vocabulary_of(data) ==
          List{"</s>", "The", "cat", "$1,000.", "In", "It", "N", "cost", "it", "ran!", "ran.", "sat.", "UNK"});
    CHECK(ids_of(data, "train") == Ids{1, 2, 11, 1, 0, 2, 9, 0, 5, 10, 0, 4, 6, 8, 7, 3, 0});
    CHECK(starts_of(data, "train") == Starts{0, 11});
  }
}

TEST_CASE("prepare articles: what a model reads of it", "[data][articles]") {
  const SmallCorpus corpus;
  prepare(corpus.options());
  const DataSet data = DataSet::open(corpus / "data");
  ArticleEvaluation plan({data.split("train"), data.articles("train"), data.article_start_token()}, 100, 2);
  Block block;
  REQUIRE(plan.next(block));
  CHECK(Ids(block.inputs.begin() + 14, block.inputs.end()) == Ids{0, 8, 2, 11, 10, 7, 2, 1, 0, 0, 0, 0, 0, 0});
  CHECK(Ids(block.targets.begin(), block.targets.begin() + 14) == Ids{3, 4, 12, 1, 0, 3, 4, 5, 6, 0, 9, 5, 1, 0});
  CHECK(block.scored_count == 22);
}

TEST_CASE("prepare articles: what is wrong in a text is counted and told", "[data][articles]") {
  const SmallCorpus corpus;
  put_file(corpus / "all/train/0", "");
  put_file(corpus / "all/train/3", " \r\n\t\n");
  put_file(corpus / "all/train/4", "caf\xe9 ran.\r\n");
  const PrepareSummary summary = prepare(corpus.options());
  CHECK(summary.splits[0].articles == 3);
  REQUIRE(summary.notes.size() == 4);
  CHECK(summary.notes[2] == "2 empty articles were left out");
  CHECK_THAT(summary.notes[3], ContainsSubstring("warning: 1 byte that is no UTF-8 became U+FFFD"));
  const DataSet data = DataSet::open(corpus / "data");
  CHECK(data.vocabulary().words()->id_of("caf\ufffd") >= 0);
  CHECK(starts_of(data, "train") == Starts{0, 14, 22});

  put_file(corpus / "all/train/5", std::string((std::size_t{1} << 20) + 1, 'x'));
  CHECK_THAT(prepare_error<FileError>(corpus.options()),
             ContainsSubstring("line 1 of '") && ContainsSubstring("train/5'"));
  std::filesystem::remove(corpus / "all/train/5");
  put_file(corpus / "all/test/d", "\n\n");
  CHECK_THAT(prepare_error<FileError>(corpus.options()),
             ContainsSubstring("every split needs an article, got none for test"));
}

TEST_CASE("prepare articles: options that do not fit", "[data][articles]") {
  const SmallCorpus corpus;
  const auto error = [&](const auto& change, const ArticleRules& rules = {}) {
    PrepareOptions options = corpus.options(rules);
    change(options);
    return prepare_error<UsageError>(options);
  };
  const auto nothing = [](PrepareOptions&) {};
  CHECK_THAT(error([](auto& options) { options.kind = TokenKind::character; }),
             ContainsSubstring("--kind word, got char"));
  CHECK_THAT(error([](auto& options) { options.words.ties = TieOrder::first; }), ContainsSubstring("not for articles"));
  CHECK_THAT(error([](auto& options) { options.words.end_of_line = false; }), ContainsSubstring("not for articles"));
  CHECK_THAT(error([](auto& options) { options.word_list = "w"; }), ContainsSubstring("not for articles"));
  CHECK_THAT(error([](auto& options) { options.subwords.vocabulary = 9; }), ContainsSubstring("--kind bpe"));
  CHECK_THAT(error([](auto& options) { options.words.min_count = 0; }), ContainsSubstring("at least 1, got 0"));
  CHECK_THAT(error([](auto& options) { options.text = "t"; }), ContainsSubstring("got --text"));
  CHECK_THAT(error([](auto& options) { options.train = options.valid = options.test = "t"; }),
             ContainsSubstring("got both"));
  CHECK_THAT(error([](auto& options) { options.articles->paths.clear(); }), ContainsSubstring("got neither"));
  CHECK_THAT(error([](auto& options) { options.split = kUsualPercentages; }), ContainsSubstring("--split works with"));
  CHECK_THAT(error(nothing, {.format = ArticleFormat::doc, .chapters = true}),
             ContainsSubstring("--format cbt, got doc"));
  for (const std::int64_t words : {-1, 0, 3})
    CHECK_THAT(error(nothing, {.words = words}), ContainsSubstring("at least 4"));
  put_file(corpus / "all/stray.txt", "x");
  CHECK_THAT(prepare_error<FileError>(corpus.options()), ContainsSubstring("must have nothing else, got 'stray.txt'"));
}

TEST_CASE("prepare articles: the file of starts is checked", "[data][articles]") {
  const SmallCorpus corpus;
  prepare(corpus.options());
  const auto path = corpus / "data/train.articles";
  const std::string good = get_file(path);
  CHECK(good.size() == 56 + 2 * 8);
  CHECK(good.substr(0, 8) == "ENGRAMAR");
  std::int64_t second = 0;
  std::memcpy(&second, good.data() + 56 + 8, 8);
  CHECK(second == 14);
  const auto error = [&](const std::string& bytes) {
    put_file(path, bytes);
    const std::string message = message_of<FileError>([&] { DataSet::open(corpus / "data"); });
    put_file(path, good);
    return message;
  };
  CHECK_THAT(error(""), ContainsSubstring("begin with 'ENGRAMAR', got an empty file"));
  CHECK_THAT(error("ENGRAMTK" + good.substr(8)), ContainsSubstring("a foreign file"));
  CHECK_THAT(error(good.substr(0, 40)), ContainsSubstring("a file of 40"));
  CHECK_THAT(error(good.substr(0, 8) + '\2' + good.substr(9)), ContainsSubstring("version 2"));
  CHECK_THAT(error(good.substr(0, good.size() - 8)), ContainsSubstring("hold the 2 starts"));
  CHECK_THAT(error(good.substr(0, good.size() - 3)), ContainsSubstring("hold the 2 starts"));
  for (std::size_t i = 12; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    CAPTURE(i);
    CHECK_THAT(error(changed), ContainsSubstring("have changed"));
  }
  // One of other data that is right in itself.
  CHECK_THAT(error(get_file(corpus / "data/valid.articles")),
             ContainsSubstring("be of the 22 tokens of its split, got 5"));
  const Starts other{0, 13};
  const DataSet data = DataSet::open(corpus / "data");
  CHECK_THAT(error(article_starts_bytes(other, 22, data.content_hash("train"))),
             ContainsSubstring("articles that data.json"));
  CHECK_THAT(error(article_starts_bytes(other, 22, 1)), ContainsSubstring("be of the tokens beside it"));
  std::filesystem::remove(path);
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(corpus / "data"); }), ContainsSubstring("train.articles"));
}

TEST_CASE("prepare articles: what data.json says of them is checked", "[data][articles]") {
  const SmallCorpus corpus;
  prepare(corpus.options());
  const std::string rules = nlohmann::json::parse(get_file(corpus / "data/data.json")).at("articles").dump();
  const auto error = [&](const auto& change) {
    prepare(corpus.options());
    nlohmann::json json = nlohmann::json::parse(get_file(corpus / "data/data.json"));
    change(json);
    put_file(corpus / "data/data.json", json.dump());
    return message_of<FileError>([&] { DataSet::open(corpus / "data"); });
  };
  CHECK(error([](nlohmann::json&) {}).empty());
  CHECK_THAT(error([](auto& json) { json["articles"]["format"] = "html"; }),
             ContainsSubstring("data.json") && ContainsSubstring("'html'"));
  CHECK_THAT(error([](auto& json) { json["articles"].erase("seed"); }),
             ContainsSubstring("data.json") && ContainsSubstring("seed"));
  CHECK_THAT(error([](auto& json) { json["splits"]["valid"].erase("articles_hash"); }),
             ContainsSubstring("articles_hash"));
  CHECK_THAT(error([](auto& json) { json["splits"]["valid"]["articles_hash"] = "fnv1a64:0"; }),
             ContainsSubstring("valid.articles") && ContainsSubstring("that data.json states"));
  // Words that know no articles.
  PrepareOptions plain;
  plain.kind = TokenKind::word;
  plain.train = plain.valid = plain.test = put_file(corpus / "a", "a b a\n");
  plain.out = corpus / "data";
  prepare(plain);
  nlohmann::json json = nlohmann::json::parse(get_file(plain.out / "data.json"));
  json["articles"] = nlohmann::json::parse(rules);
  put_file(plain.out / "data.json", json.dump());
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(plain.out); }),
             ContainsSubstring("must have the words </s> and UNK"));
}

TEST_CASE("data without articles is as it was", "[data][articles]") {
  const SmallCorpus corpus;
  PrepareOptions plain;
  plain.kind = TokenKind::word;
  plain.train = put_file(corpus / "a", "a b a\n");
  plain.valid = plain.test = put_file(corpus / "b", "a b\n");
  plain.out = corpus / "data";
  // In the folder of data with articles, whose files must go.
  prepare(corpus.options());
  CHECK(std::filesystem::exists(corpus / "data/test.articles"));
  prepare(plain);
  for (const char* name : {"train", "valid", "test"})
    CHECK_FALSE(std::filesystem::exists(corpus / ("data/" + std::string(name) + ".articles")));
  const DataSet data = DataSet::open(plain.out);
  CHECK(data.articles("train").empty());
  CHECK_FALSE(data.article_rules());
  CHECK(data.article_start_token() == -1);
  Fnv1a64 hash;
  hash.add_number(data.vocabulary().hash());
  for (const std::string_view split : kSplitNames) hash.add_number(data.content_hash(split));
  CHECK(data.hash() == hash.value());
  const nlohmann::json json = nlohmann::json::parse(get_file(plain.out / "data.json"));
  CHECK_FALSE(json.contains("articles"));
  CHECK_FALSE(json.at("splits").at("train").contains("articles"));

  // The hash of data with articles says where they start.
  prepare(corpus.options());
  const std::uint64_t two = DataSet::open(corpus / "data").hash();
  std::filesystem::remove(corpus / "all/train/2.txt");
  put_file(corpus / "all/train/1.txt", std::string(kFirst) + "\n" + std::string(kSecond));
  prepare(corpus.options());
  const DataSet one = DataSet::open(corpus / "data");
  CHECK(starts_of(one, "train") == Starts{0});
  CHECK(one.split("train").size() == 22);
  CHECK(one.hash() != two);
}

TEST_CASE("prepare articles: by the program", "[data][articles]") {
  const SmallCorpus corpus;
  const auto path = [&](std::string_view name) { return (corpus / name).string(); };
  const nlohmann::json folder =
      json_of({"prepare", "--kind", "word", "--articles", path("all"), "--out", path("d1"), "--words", "8", "--json"});
  CHECK(folder.at("vocabulary") == 8);
  CHECK(folder.at("splits").at("train").at("articles") == 2);
  CHECK(folder.at("splits").at("valid").at("coverage").get<double>() == Approx(0.8));
  const nlohmann::json splits =
      json_of({"prepare", "--kind", "word", "--articles", "--train", path("all/train"), "--valid", path("all/valid/c"),
               "--test", path("all/test"), "--out", path("d2"), "--lower", "--no-eos", "--json"});
  CHECK(splits.at("splits").at("train").at("tokens") == 18);
  const nlohmann::json several =
      json_of({"prepare", "--kind", "word", "--articles", path("all/train"), path("all/valid"), path("all/test"),
               "--split", "90,5,5", "--seed", "3", "--out", path("d3"), "--json"});
  CHECK(several.at("splits").at("train").at("articles").get<int>() +
            several.at("splits").at("valid").at("articles").get<int>() +
            several.at("splits").at("test").at("articles").get<int>() ==
        4);
  CHECK_THAT(run_engram({"prepare", "--kind", "word", "--articles", path("all"), "--out", path("d1")}).out,
             ContainsSubstring("articles") && ContainsSubstring("covers 100.00%"));
  const auto error = [&](List more) {
    List arguments{"prepare", "--kind", "word", "--out", path("d4")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return error_of(arguments, 2);
  };
  CHECK_THAT(error({"--articles", path("all"), "--oov", "error"}), ContainsSubstring("--oov is not for articles"));
  CHECK_THAT(error({"--articles", path("all"), "--format", "html"}), ContainsSubstring("cbt, got 'html'"));
  CHECK_THAT(error({"--text", path("all/valid/c"), "--no-eos"}), ContainsSubstring("--no-eos works with --articles"));
  CHECK_THAT(error({"--text", path("all/valid/c"), "--seed", "3"}), ContainsSubstring("--seed works with --articles"));
  CHECK_THAT(error({"--articles"}), ContainsSubstring("got neither"));
}

}  // namespace engram::harness::prepare_articles_test
