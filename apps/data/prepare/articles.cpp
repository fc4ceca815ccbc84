/// Preparing words in articles: one pass over files of any number ([key-value-predict 5.2]).

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/collected_articles.hpp"
#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/given_articles.hpp"
#include "apps/data/prepare/given_vocabulary.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/article_text.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

void require_article_options(const PrepareOptions& options) {
  if (options.kind != TokenKind::word)
    throw UsageError(text("prepare: --articles works with --kind bpe or --kind word, got ", name_of(options.kind)));
  require_word_options(options);
  WordRules ours;
  ours.min_count = options.words.min_count;
  ours.lower = options.words.lower;
  ours.unseen = options.words.unseen;
  if (options.words != ours || !options.word_list.empty())
    throw UsageError(
        "prepare: --eol, --ties, --eos-id, --count-from, --sentences, --rules and --word-list are not for articles, "
        "got "
        "one of them with --articles\n  articles have --no-eos, --words and --min-count");
  const ArticleRules& rules = *options.articles;
  if (rules.chapters && rules.format != ArticleFormat::cbt && rules.format != ArticleFormat::automatic)
    throw UsageError(text("prepare: --chapters works with --format cbt, got ", name_of(rules.format)));
  constexpr std::int64_t kFewest = 4;
  if (rules.words && *rules.words < kFewest)
    throw UsageError(text("prepare: --words must be at least ", kFewest, ", ", kSentenceEnd, ", ", kNumber, ", ",
                          kUnknownWord, " and a word, got ", *rules.words));
  if (options.words.min_count < 1)
    throw UsageError(text("prepare: --min-count must be at least 1, got ", options.words.min_count));
  if (!options.text.empty()) throw UsageError("prepare: --articles takes files and folders itself, got --text with it");
}

/// Tells how much of the text of files has been read.
class WatchedSink final : public ArticleSink {
 public:
  WatchedSink(ArticleSink& sink, std::int64_t all, const ByteWatch& watch) : sink_(sink), all_(all), watch_(watch) {}

  void begin_article(std::string name, bool goes_on) override { sink_.begin_article(std::move(name), goes_on); }
  void add_text(std::int64_t bytes, std::int64_t words) override {
    constexpr std::int64_t kBetween = 1 << 16;
    const std::int64_t before = std::exchange(read_, read_ + bytes);
    if (read_ / kBetween != before / kBetween) watch_(read_, all_);
    sink_.add_text(bytes, words);
  }
  void add_sentence(std::vector<std::string>& words) override { sink_.add_sentence(words); }

 private:
  ArticleSink& sink_;
  std::int64_t all_, read_ = 0;
  const ByteWatch& watch_;
};

struct Read {
  std::vector<SourceFacts> sources;  // of the given paths
  std::int64_t replaced = 0;
  std::set<ArticleFormat> formats;
};

Read read_all(const GivenArticles& given, const PrepareOptions& options, CollectedArticles& articles) {
  Read read;
  for (std::size_t i = 0; i < given.paths.size(); ++i) {
    const fs::path& path = given.paths[i];
    const std::size_t before = articles.articles().size();
    const std::vector<NamedFile> files = article_files(path);
    SourceFacts facts{path.string(), 0, 0};
    Fnv1a64 all;
    options.watch.begin(text("reading '", path.string(), "'"));
    WatchedSink sink(articles, bytes_of(files), options.watch.at);
    for (const NamedFile& file : files) {
      const ArticleFileFacts one = read_articles(file.path, file.name, *options.articles, options.words.lower, sink);
      facts.bytes += one.bytes;
      facts.hash = one.hash;
      all.add(file.name);
      all.add_number(one.hash);
      read.replaced += one.replaced;
      read.formats.insert(one.format);
    }
    articles.finish();
    if (std::error_code error; fs::is_directory(path, error)) facts.hash = all.value();
    read.sources.push_back(std::move(facts));
    if (!given.are_splits) continue;
    if (articles.articles().size() == before)
      throw FileError(text("prepare: every split needs an article, got none for ", kSplitNames.at(i), " from '",
                           path.string(), "'"));
    for (std::size_t a = before; a < articles.articles().size(); ++a) articles.articles()[a].split = i;
  }
  return read;
}

/// Writes the tokens of a split and where its articles start.
void write_split(const CollectedArticles& articles, const ArticleVocabulary& vocabulary, FolderWriter& writer,
                 std::size_t split, SplitSummary& summary) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  TokenFileWriter& tokens = writer.begin_split();
  const std::int32_t unknown = vocabulary.vocabulary.unknown_token();
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> ids;
  for (const CollectedArticle& article : articles.articles()) {
    if (article.split != split) continue;
    starts.push_back(tokens.count() + std::ssize(ids));
    for (const std::int32_t word :
         std::span(articles.ids())
             .subspan(static_cast<std::size_t>(article.first), static_cast<std::size_t>(article.tokens))) {
      ids.push_back(vocabulary.ids[static_cast<std::size_t>(word)]);
      summary.unknown += ids.back() == unknown ? 1 : 0;
    }
    summary.bytes += article.bytes;
    summary.words += article.words;
    if (vocabulary.vocabulary.end_token() >= 0) summary.end_tokens += article.sentences;
    if (ids.size() < kPiece) continue;
    tokens.append(ids);
    ids.clear();
  }
  tokens.append(ids);
  writer.put_articles(starts);
  summary.articles = std::ssize(starts);
  summary.articles_hash = hash_of_starts(starts);
}

std::vector<std::string> notes_of(const PrepareSummary& summary, const Read& read, std::int64_t empty,
                                  const ArticleVocabulary& vocabulary) {
  const auto& splits = summary.splits;
  std::vector<std::string> notes;
  notes.push_back(text(splits[0].articles, " articles in train, ", splits[1].articles, " in valid and ",
                       splits[2].articles, " in test"));
  notes.push_back(fmt::format(
      "the vocabulary covers {:.2f}% of the tokens of train, {:.2f}% of valid and {:.2f}% of test; the others are {}",
      100 * splits[0].coverage(), 100 * splits[1].coverage(), 100 * splits[2].coverage(), kUnknownWord));
  if (vocabulary.left_out > 0)
    notes.push_back(text(vocabulary.left_out, " different words of train are not in the vocabulary"));
  if (empty > 0) notes.push_back(text(empty, empty == 1 ? " empty article was" : " empty articles were", " left out"));
  if (read.replaced > 0)
    notes.push_back(text("warning: ", read.replaced, read.replaced == 1 ? " byte that is" : " bytes that are",
                         " no UTF-8 became U+FFFD; if there are many, convert the files first, for example with iconv ",
                         "-t UTF-8"));
  return notes;
}

}  // namespace

PrepareSummary prepare_articles(const PrepareOptions& options) {
  require_article_options(options);
  const ArticleRules& rules = *options.articles;
  const GivenArticles given = given_articles(options);
  CollectedArticles articles(rules.sentence_end);
  const Read read = read_all(given, options, articles);
  options.watch.begin("making the vocabulary");
  if (!given.are_splits)
    split_articles(articles.articles(), rules.seed, options.split.value_or(kUsualArticlePercentages), rules.held_out);
  const ArticleVocabulary collected = options.given ? given_vocabulary(articles, *options.given->vocabulary.words())
                                                    : collect_vocabulary(articles, rules.words.value_or(0),
                                                                         options.words.min_count, rules.sentence_end);

  const Vocabulary vocabulary(collected.vocabulary);
  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  for (std::size_t i = 0; i < summary.splits.size(); ++i) {
    SplitSummary& split = summary.splits[i];
    const std::size_t source = given.are_splits ? i : 0;
    options.watch.begin(text("writing ", kSplitNames[i]));
    split.name = kSplitNames[i];
    split.source_index = source;
    split.source_count = given.are_splits ? 1 : std::ssize(given.paths);
    split.source = split.source_count == 1 ? given.paths[source].string() : text(split.source_count, " paths");
    write_split(articles, collected, writer, i, split);
    split.tokens = writer.splits()[i].count();
  }
  summary.notes = notes_of(summary, read, articles.empty(), collected);
  add_given_note(options, summary.notes);
  if (read.formats.size() == 1) summary.article_format = *read.formats.begin();
  finish(options, read.sources, vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
