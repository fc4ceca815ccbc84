/// Which articles of `engram prepare --articles` are train, valid and test.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/collected_articles.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::article_splits_test {

using namespace engram::data;

namespace {

using Starts = std::vector<std::int64_t>;

Starts starts_of(const DataSet& data, std::string_view split) {
  const auto starts = data.articles(split);
  return {starts.begin(), starts.end()};
}

/// The text of a split.
std::string text_of(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return data.vocabulary().decode(ids);
}

/// Articles "a00" to "a<n - 1>" of the given tokens, each without sentence ends: as many words "w".
std::vector<CollectedArticle> collected(const std::vector<std::int64_t>& tokens) {
  std::vector<CollectedArticle> articles;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string number = std::to_string(i);
    articles.push_back({.name = "a" + (number.size() < 2 ? "0" + number : number), .tokens = tokens[i]});
  }
  return articles;
}

}  // namespace

TEST_CASE("prepare articles: splits by the hash of names, whatever their order and place", "[data][articles]") {
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 60; ++i) lengths.push_back(10 + i % 7 * 13);
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<CollectedArticle> articles = collected(lengths);
  split_articles(articles, 5, kUsualArticlePercentages);

  // By the definition: in the order of hashes to valid until it has its share, then to test.
  std::map<std::uint64_t, const CollectedArticle*> by_hash;
  for (const CollectedArticle& article : articles) by_hash[article_hash(5, article.name)] = &article;
  REQUIRE(by_hash.size() == 60);
  std::array<std::int64_t, 3> tokens{};
  for (const auto& [hash, article] : by_hash) {
    const auto full = [&](std::size_t split) {
      return static_cast<double>(tokens.at(split)) >= 0.048 * static_cast<double>(total);
    };
    const std::size_t expected = !full(1) ? 1 : !full(2) ? 2 : 0;
    CHECK(article->split == expected);
    tokens.at(expected) += article->tokens;
  }
  for (const std::size_t split : {1u, 2u}) {
    CHECK(static_cast<double>(tokens.at(split)) >= 0.048 * static_cast<double>(total));
    CHECK(static_cast<double>(tokens.at(split)) < 0.048 * static_cast<double>(total) + 88);
  }

  const auto held_out = [](const std::vector<CollectedArticle>& of) {
    std::set<std::pair<std::string, std::size_t>> names;
    for (const CollectedArticle& article : of)
      if (article.split != 0) names.emplace(article.name, article.split);
    return names;
  };
  std::vector<CollectedArticle> reversed = collected(lengths);
  std::ranges::reverse(reversed);
  split_articles(reversed, 5, kUsualArticlePercentages);
  CHECK(held_out(reversed) == held_out(articles));
  std::vector<CollectedArticle> other = collected(lengths);
  split_articles(other, 6, kUsualArticlePercentages);
  CHECK(held_out(other) != held_out(articles));

  // Shares of the user's, and too few articles.
  split_articles(other, 6, {50, 25, 25});
  tokens = {};
  for (const CollectedArticle& article : other) tokens.at(article.split) += article.tokens;
  CHECK(static_cast<double>(tokens[1]) == Approx(total / 4.0).margin(88));
  CHECK(static_cast<double>(tokens[2]) == Approx(total / 4.0).margin(88));
  std::vector<CollectedArticle> three = collected({5, 5, 5}), two = collected({5, 5});
  split_articles(three, 1, kUsualArticlePercentages);
  CHECK(std::set<std::size_t>{three[0].split, three[1].split, three[2].split}.size() == 3);
  CHECK_THAT(message_of<FileError>([&] { split_articles(two, 1, kUsualArticlePercentages); }),
             ContainsSubstring("got none for train from 2 articles"));
}

TEST_CASE("prepare articles: hashes of names that differ in one letter are far apart", "[data][articles]") {
  // Of 256 names in random order about 16 are among the smallest sixteenth of the numbers, from any run of 64 about 4.
  std::array<int, 4> small{};
  for (int i = 0; i < 256; ++i)
    small.at(static_cast<std::size_t>(i) / 64) +=
        article_hash(1, "article " + std::string(1, static_cast<char>(i))) >> 60 == 0;
  const int all = std::accumulate(small.begin(), small.end(), 0);
  CHECK(all > 4);
  CHECK(all < 32);
  for (const int part : small) CHECK(part < 14);
  CHECK(article_hash(1, "a") != article_hash(2, "a"));
}

TEST_CASE("prepare articles: the chapters of a book are articles of one split", "[data][articles][cbt]") {
  TemporaryFolder folder;
  std::string books;
  for (int book = 0; book < 12; ++book) {
    books += "_BOOK_TITLE_ : book" + std::to_string(book) + "\n";
    for (int chapter = 0; chapter < 4; ++chapter)
      books += "CHAPTER " + std::to_string(chapter) + "\nb" + std::to_string(book) + " is here .\n";
  }
  put_file(folder / "books.txt", books);
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.out = folder / "data";
  options.articles = ArticleRules{.paths = {folder / "books.txt"}, .format = ArticleFormat::cbt, .chapters = true};
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].articles == 40);
  CHECK(summary.splits[1].articles == 4);
  CHECK(summary.splits[2].articles == 4);
  CHECK(summary.notes.size() == 2);  // no empty articles between title and first chapter
  const DataSet data = DataSet::open(options.out);
  // CHAPTER N </s> b3 is here . </s>
  CHECK(starts_of(data, "test") == Starts{0, 8, 16, 24});
  options.articles->chapters = false;
  prepare(options);
  CHECK(starts_of(DataSet::open(options.out), "test") == Starts{0});
}

TEST_CASE("prepare articles: splits given as files, and articles of several paths", "[data][articles]") {
  TemporaryFolder folder;
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.articles = ArticleRules{.pretokenized = true};
  options.train = put_file(folder / "w.train", " \n = A = \n \n a b \n \n = B = \n \n b \n");
  options.valid = put_file(folder / "w.valid", " = C = \n \n a \n");
  options.test = put_file(folder / "w.test", " = D = \n \n b \n");
  options.out = folder / "data";
  prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(text_of(data, "train") == "= A =\na b\n= B =\nb\n");
  CHECK(starts_of(data, "train") == Starts{0, 7});
  CHECK(text_of(data, "test") == "= UNK =\nb\n");

  // The same articles, split: every one is in one split, with all of its tokens.
  PrepareOptions split = options;
  split.articles->paths = {options.train, options.valid, options.test};
  split.train = split.valid = split.test = "";
  const PrepareSummary summary = prepare(split);
  CHECK(summary.splits[0].articles + summary.splits[1].articles + summary.splits[2].articles == 4);
  CHECK(summary.splits[0].tokens + summary.splits[1].tokens + summary.splits[2].tokens == 7 + 6 + 6 + 6);
  split.split = Percentages{50, 30, 20};
  const PrepareSummary others = prepare(split);
  CHECK(others.splits[1].articles == 2);
  CHECK(nlohmann::json::parse(get_file(options.out / "data.json")).at("split") == std::vector<double>{50, 30, 20});
}

TEST_CASE("prepare articles: WikiText's validation and test files are 60 articles each", "[data][articles]") {
  const char* const asked = std::getenv("ENGRAM_TEST_TEXTS");
  const std::filesystem::path texts = asked != nullptr ? asked : ENGRAM_SOURCE_DIR "/../shared/data";
  const auto valid = texts / "wikitext.valid.txt", test = texts / "wikitext.test.txt";
  if (!std::filesystem::exists(valid) || !std::filesystem::exists(test)) {
    WARN("skipped: no WikiText in '" << texts.string() << "'; ENGRAM_TEST_TEXTS names the folder");
    return;
  }
  TemporaryFolder folder;
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.articles = ArticleRules{.pretokenized = true, .keep_numbers = true};
  options.train = options.valid = valid;
  options.test = test;
  options.out = folder / "data";
  for (const bool lines : {true, false}) {
    options.articles->sentence_lines = lines;
    const PrepareSummary summary = prepare(options);
    CHECK(summary.splits[1].articles == 60);
    CHECK(summary.splits[2].articles == 60);
    // As in prepare_words_test.cpp.
    CHECK(summary.splits[1].tokens - summary.splits[1].end_tokens == 213'886);
    CHECK(summary.splits[1].words == 213'886);
    CHECK(summary.splits[2].tokens - summary.splits[2].end_tokens == 245'569 - 4'358);
  }
}

}  // namespace engram::harness::article_splits_test
