/// `engram prepare --kind bpe` as the product-key paper prepared its news ([product-key 6]): Moses' words, given codes,
/// folders of shards, and whole articles held out.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/merge_texts.hpp"
#include "tests/apps/data/subword_texts.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::prepare_news_test {

using namespace engram::data;

namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> ids_of(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return ids;
}

std::string decode(const DataSet& data, std::string_view split) {
  return data.vocabulary().decode(ids_of(data, split));
}

/// The texts of the articles of a split.
std::vector<std::string> articles_of(const DataSet& data, std::string_view split) {
  const std::vector<std::int32_t> ids = ids_of(data, split);
  const auto starts = data.articles(split);
  std::vector<std::string> articles;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : std::ssize(ids);
    articles.push_back(data.vocabulary().decode(
        std::span(ids).subspan(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(end - starts[i]))));
  }
  return articles;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = get_file(entry.path());
  return files;
}

PrepareOptions news_options(const TemporaryFolder& folder) {
  PrepareOptions options;
  options.kind = TokenKind::subword;
  options.subwords.vocabulary = 320;
  options.out = folder / "data";
  return options;
}

/// A folder of shards with 60 articles, a few of them twice, the lines of which are told by themselves.
struct News : TemporaryFolder {
  News() {
    fs::create_directories(*this / "news/2018");
    const std::vector<std::string> lines = subword_lines(300);
    std::array<std::string, 4> shards;
    for (std::size_t i = 0; i < 60; ++i) {
      std::string text = "Article " + std::to_string(i) + ".\n";
      for (std::size_t l = 0; l < 2 + i % 4; ++l) text += "  " + lines[i * 5 + l] + "\n\n";
      for (std::size_t copy = 0; copy < (i < 4 ? 2u : 1u); ++copy)
        shards.at((i + copy) % 4) +=
            "<doc title=\"t" + std::to_string(i) + "-" + std::to_string(copy) + "\">\n" + text + "</doc>\n";
    }
    put_file(*this / "news/b", shards[0]);
    put_file(*this / "news/2018/a", shards[1]);
    put_file(*this / "news/2018/c", shards[2]);
    put_file(*this / "news/a", shards[3] + "<doc title=\"none\">\n\n</doc>\n");
  }
  PrepareOptions options(std::int64_t held_out) const {
    PrepareOptions made = news_options(*this);
    made.articles.emplace().paths = {*this / "news"};
    made.articles->held_out = held_out;
    return made;
  }
};

template <class Expected>
std::string prepare_error(const PrepareOptions& options) {
  return message_of<Expected>([&] { prepare(options); });
}

}  // namespace

TEST_CASE("prepare news: whole articles are held out, and none is in two splits", "[data][product-key]") {
  const News folder;
  PrepareOptions options = folder.options(5);
  const PrepareSummary summary = prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(data.kind() == TokenKind::subword);
  CHECK(data.article_start_token() == data.vocabulary().end_token());
  std::map<std::string, std::set<std::string_view>> splits_of;
  std::multiset<std::string> all;
  for (const std::string_view split : kSplitNames)
    for (const std::string& article : articles_of(data, split)) {
      splits_of[article].insert(split);
      all.insert(article);
      CHECK(article.starts_with("Article "));
      CHECK(article.ends_with('\n'));
      CHECK(article.find("\n\n") == std::string::npos);
      CHECK(article.find("\n ") == std::string::npos);
    }
  CHECK(all.size() == 64);
  CHECK(splits_of.size() == 60);
  for (const auto& [article, splits] : splits_of) CHECK(splits.size() == 1);
  CHECK(summary.splits[1].articles >= 5);
  CHECK(summary.splits[1].articles <= 6);
  CHECK(summary.splits[2].articles >= 5);
  CHECK(summary.splits[0].articles + summary.splits[1].articles + summary.splits[2].articles == 64);
  CHECK(data.text_amount("train")->bytes == 0);  // blank lines are left out
  CHECK(data.text_amount("valid")->words == summary.splits[1].words);
  CHECK_THAT(summary.notes[1], ContainsSubstring("4 articles have the lines of another one, and are in the same"));
  CHECK_THAT(summary.notes[2], ContainsSubstring("1 empty article was left out"));

  // The same whatever the files are called, and other articles with another seed.
  const auto first = contents(options.out);
  fs::rename(folder / "news/a", folder / "news/z");
  prepare(options);
  const DataSet renamed = DataSet::open(options.out);
  for (const std::string_view split : kSplitNames) {
    std::multiset<std::string> texts;
    for (const std::string& article : articles_of(renamed, split)) {
      CHECK(splits_of[article].contains(split));
      texts.insert(article);
    }
    CHECK(texts.size() == renamed.articles(split).size());
  }
  fs::rename(folder / "news/z", folder / "news/a");
  prepare(options);
  CHECK(contents(options.out) == first);
  options.articles->seed = 2;
  prepare(options);
  CHECK(articles_of(DataSet::open(options.out), "valid") != articles_of(data, "valid"));

  const nlohmann::json json = nlohmann::json::parse(first.at("data.json"));
  CHECK(json["articles"]["held_out"] == 5);
  CHECK(json["articles"]["found_format"] == "doc");
  CHECK_FALSE(json.contains("split"));
  CHECK(json["splits"]["valid"]["articles"] == summary.splits[1].articles);
  CHECK(DataSet::open(options.out).article_rules()->held_out == 5);
}

TEST_CASE("prepare news: shares, given splits and what is refused", "[data]") {
  const News folder;
  PrepareOptions options = folder.options(5);
  options.articles->held_out.reset();
  options.split = Percentages{60, 20, 20};
  PrepareSummary summary = prepare(options);
  const auto bytes = [&](std::size_t split) { return static_cast<double>(summary.splits.at(split).bytes); };
  const double total = bytes(0) + bytes(1) + bytes(2);
  CHECK(bytes(1) >= 0.2 * total);
  CHECK(bytes(1) < 0.25 * total);

  options.split.reset();
  options.articles->paths.clear();
  options.train = folder / "news";
  options.valid = put_file(folder / "valid", "Article 0.\nstone\n");
  options.test = put_file(folder / "test", get_file(folder / "news/b"));
  summary = prepare(options);
  CHECK(summary.splits[1].articles == 1);
  CHECK_THAT(summary.notes[1], ContainsSubstring("16 articles of valid and test are in train too, line by line"));
  options.articles->held_out = 3;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got --train, --valid and --test with it"));

  options = folder.options(40);
  CHECK_THAT(prepare_error<FileError>(options),
             ContainsSubstring("got none for train from 64 articles") && ContainsSubstring("smaller --held-out"));
  options = folder.options(5);
  options.split = Percentages{60, 20, 20};
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got --split with it"));
  options = folder.options(5);
  options.articles->chapters = true;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("those are of --kind word"));
  options = folder.options(5);
  options.kind = TokenKind::character;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--kind bpe or --kind word, got char"));
  options = folder.options(5);
  put_file(folder / "news/b", "<doc>\nx\n");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("must have its </doc>, got none at the end of '"));
}

TEST_CASE("prepare news: articles of words are held out by number too", "[data][articles]") {
  const News folder;
  PrepareOptions options = folder.options(7);
  options.kind = TokenKind::word;
  options.subwords = {};
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[1].articles == 7);
  CHECK(summary.splits[2].articles == 7);
  CHECK(summary.splits[0].articles == 50);
}

TEST_CASE("prepare shards: folders are read by name, as one text", "[data][product-key]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "train");
  fs::create_directories(folder / "held");
  const std::string text = subword_text(300);
  const std::size_t cut = text.find('\n', text.size() / 3) + 1, second = text.find('\n', text.size() / 2) + 1;
  put_file(folder / "train/news-2", text.substr(second));
  put_file(folder / "train/news-0", text.substr(0, cut));
  put_file(folder / "train/news-1", text.substr(cut, second - cut));
  put_file(folder / "train/.hidden", "not read");
  put_file(folder / "held/0", "stone river");
  put_file(folder / "held/1", "light\n");
  PrepareOptions options = news_options(folder);
  options.train = folder / "train";
  options.valid = folder / "held";
  options.test = folder / "held/1";
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].source_count == 3);
  CHECK(summary.splits[1].end_appended);
  CHECK(summary.splits[1].words == 3);
  const DataSet data = DataSet::open(options.out);
  CHECK(decode(data, "train") == text);
  CHECK(decode(data, "valid") == "stone river\nlight\n");
  CHECK(data.text_amount("train")->bytes == std::ssize(text));
  const nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  CHECK(json["sources"].size() == 6);
  CHECK(json["splits"]["valid"]["source"] == 3);
  CHECK(json["splits"]["valid"]["source_count"] == 2);

  // The same tokens as of one file.
  const auto sharded = ids_of(data, "train");
  options.train = put_file(folder / "whole", text);
  prepare(options);
  CHECK(ids_of(DataSet::open(options.out), "train") == sharded);
  fs::create_directories(folder / "empty");
  options.train = folder / "empty";
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("must have a file in it, got none in '"));
}

TEST_CASE("prepare codes: Moses' words in given subwords, and back to words", "[data][product-key]") {
  TemporaryFolder folder;
  PrepareOptions options = news_options(folder);
  options.subwords = {};
  options.subwords.codes = put_file(folder / "codes", kFastCodes);
  options.train = put_file(folder / "train", "It's low, lowest.\n\n  A new one... (low)\n");
  options.valid = put_file(folder / "valid", "The lowest!\n");
  options.test = put_file(folder / "test", "A new one\n");
  options.tokenizer.emplace();
  const PrepareSummary summary = prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(decode(data, "train") == "It 's low , lowest .\n\nA new one ... ( low )\n");
  // What train has no subword for is unknown, and counted: T@@, h@@, ! and nothing else.
  CHECK(summary.splits[1].unknown == 3);
  CHECK(decode(data, "valid") == "\ufffd \ufffd e lowest \ufffd\n");
  CHECK(summary.splits[0].words == 7);  // of the text, not of what was made of it
  CHECK(summary.splits[0].altered == 0);
  CHECK(data.text_amount("train")->words == 7);
  CHECK(data.text_amount("train")->bytes == 0);
  CHECK_THAT(summary.notes.back(), ContainsSubstring("0 subwords of train, 3 of valid and 0 of test are not in the"));
  const nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  CHECK(json["tokenizer"]["name"] == "moses");
  CHECK(json["bpe_codes"] == (folder / "codes").string());
  CHECK_FALSE(json.contains("bpe_sample"));

  // A prompt is read as the text was, also from what a checkpoint keeps.
  const TextReading reading{data.vocabulary(), TextRules::parse(data.text_rules().json_text())};
  CHECK(data.vocabulary().decode(text_tokens("A new one...(low)", reading, "test", "the text")) ==
        "A new one ... ( low )");

  // The model of one folder serves another, with the same ids.
  options.subwords = {.vocabulary = {},
                      .sample = {},
                      .model = options.out / "vocabulary.model",
                      .codes = {},
                      .list = {},
                      .threshold = {}};
  options.out = folder / "again";
  prepare(options);
  CHECK(DataSet::open(options.out).vocabulary().hash() == data.vocabulary().hash());
  CHECK(ids_of(DataSet::open(options.out), "train") == ids_of(data, "train"));
}

TEST_CASE("prepare codes: a given vocabulary and its threshold", "[data][product-key]") {
  TemporaryFolder folder;
  PrepareOptions options = news_options(folder);
  options.subwords = {};
  options.subwords.codes = put_file(folder / "codes", kVersion2Codes);
  options.subwords.list = put_file(folder / "list", kSubwordList);
  options.train = put_file(folder / "train", "low newest aaaaa\nlow low\n");
  options.valid = put_file(folder / "valid", "lowest low\n");
  options.test = put_file(folder / "test", "low low\n");
  CHECK(prepare(options).vocabulary_size == 10);
  CHECK(decode(DataSet::open(options.out), "train") == "low newest aaaaa\nlow low\n");
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 25);
  options.subwords.threshold = 2;
  CHECK(prepare(options).vocabulary_size == 9);
  options.subwords.threshold = 4;
  const PrepareSummary few = prepare(options);
  CHECK(few.vocabulary_size == 4);
  CHECK(few.splits[1].unknown > 0);

  options.subwords.threshold = 9;
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("list' must have subwords with a count of at least"));
  options.subwords.list.clear();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--bpe-threshold must leave a subword of train"));
  options.subwords.codes.clear();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("go with --bpe-codes, got one of them without"));
  options.subwords = {};
  options.subwords.codes = folder / "codes";
  options.subwords.vocabulary = 300;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--bpe-codes are learned already, got --vocab"));
  options.subwords = {};
  options.kind = TokenKind::word;
  options.tokenizer.emplace();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--tokenizer works with --kind bpe, got it with"));
}

}  // namespace engram::harness::prepare_news_test
