/// Articles of which subwords are made: files of any number and size, read through once to choose whole articles for
/// each split, and again for each split.

#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/collected_articles.hpp"
#include "apps/data/prepare/given_articles.hpp"
#include "apps/data/prepare/subword_texts.hpp"
#include "apps/data/text/article_text.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kNoSplit = 3;

/// What is remembered of every article.
struct MetArticle {
  std::uint64_t lines_hash = 0;
  std::int64_t bytes = 0, words = 0;
  std::uint8_t split = kNoSplit;  // stays so without lines
};

struct MetFile {
  NamedFile file;
  std::uint64_t hash = 0;
  std::size_t first = 0, end = 0;  // its articles
  std::bitset<3> splits{};         // that they are of
};

/// Meets articles for the first time.
class MeetingSink final : public ArticleLineSink {
 public:
  MeetingSink(std::vector<MetArticle>& articles, const ByteWatch& watch, std::int64_t all)
      : articles_(articles), watch_(watch), all_(all) {}

  void begin_article() override {
    end_article();
    articles_.emplace_back();
  }
  void add_line(std::string_view line, std::int64_t bytes, std::int64_t words) override {
    constexpr std::int64_t kBetween = 1 << 20;
    hash_.add(line);
    hash_.add("\n");
    articles_.back().bytes += bytes;
    articles_.back().words += words;
    const std::int64_t before = std::exchange(read_, read_ + bytes);
    if (read_ / kBetween != before / kBetween) watch_(read_, all_);
  }
  void end_article() {
    if (!articles_.empty() && articles_.back().lines_hash == 0) articles_.back().lines_hash = hash_.value();
    hash_ = {};
  }

 private:
  std::vector<MetArticle>& articles_;
  Fnv1a64 hash_;
  const ByteWatch& watch_;
  std::int64_t all_, read_ = 0;
};

/// Reads the articles of one split again.
class SplitSink final : public ArticleLineSink {
 public:
  SplitSink(std::span<const MetArticle> articles, std::size_t split, const std::function<void(std::string_view)>& line,
            const std::function<void()>& article)
      : articles_(articles), split_(split), line_(line), article_(article) {}

  void begin_article() override {
    taken_ = next_ < articles_.size() && articles_[next_].split == split_;
    ++next_;
    if (taken_) article_();
  }
  void add_line(std::string_view line, std::int64_t bytes, std::int64_t) override {
    if (!taken_) return;
    line_(line);
    read_ += bytes;
  }
  std::int64_t read() const { return read_; }

 private:
  std::span<const MetArticle> articles_;
  std::size_t split_, next_ = 0;
  const std::function<void(std::string_view)>& line_;
  const std::function<void()>& article_;
  std::int64_t read_ = 0;
  bool taken_ = false;
};

class ArticleTexts final : public SubwordTexts {
 public:
  explicit ArticleTexts(const PrepareOptions& options)
      : rules_(*options.articles), given_(given_articles(options)), watch_(options.watch) {
    for (std::size_t i = 0; i < given_.paths.size(); ++i) meet(i);
    if (!given_.are_splits) choose(options.split.value_or(kUsualArticlePercentages));
    for (MetFile& file : files_)
      for (const MetArticle& article : articles_of(file))
        if (article.split != kNoSplit) file.splits.set(article.split);
    for (const MetArticle& article : articles_) {
      if (article.split == kNoSplit) continue;
      SplitSummary& split = splits_.at(article.split);
      split.bytes += article.bytes;
      split.words += article.words;
      ++split.articles;
    }
    if (given_.are_splits) count_shared();
  }

  SplitSummary summary(std::size_t split) const override {
    SplitSummary summary = splits_.at(split);
    summary.name = kSplitNames.at(split);
    summary.source_index = given_.are_splits ? split : 0;
    summary.source_count = given_.are_splits ? 1 : std::ssize(given_.paths);
    summary.source =
        summary.source_count == 1 ? given_.paths[summary.source_index].string() : text(summary.source_count, " paths");
    return summary;
  }
  std::vector<SourceFacts> sources() const override { return sources_; }
  std::optional<ArticleFormat> article_format() const override {
    return formats_.size() == 1 ? std::optional(*formats_.begin()) : std::nullopt;
  }
  std::vector<std::string> notes() const override;
  void read(std::size_t split, const std::function<void(std::string_view line)>& line,
            const std::function<void()>& article, const ByteWatch& watch) const override;

 private:
  void meet(std::size_t given);
  void choose(const Percentages& shares);
  void count_shared();
  std::span<const MetArticle> articles_of(const MetFile& file) const {
    return std::span(articles_).subspan(file.first, file.end - file.first);
  }

  ArticleRules rules_;
  GivenArticles given_;
  PrepareWatch watch_;
  std::vector<MetFile> files_;
  std::vector<MetArticle> articles_;
  std::vector<SourceFacts> sources_;
  std::set<ArticleFormat> formats_;
  std::array<SplitSummary, 3> splits_{};
  std::int64_t replaced_ = 0, empty_ = 0, copies_ = 0, shared_ = 0;
};

void ArticleTexts::meet(std::size_t given) {
  const fs::path& path = given_.paths[given];
  const std::vector<NamedFile> files = article_files(path);
  SourceFacts facts{path.string(), 0, 0};
  Fnv1a64 all;
  watch_.begin(text("reading '", path.string(), "'"));
  MeetingSink sink(articles_, watch_.at, bytes_of(files));
  const std::size_t before = articles_.size();
  for (const NamedFile& file : files) {
    std::error_code error;
    if (fs::exists(file.path, error) && !fs::is_regular_file(file.path, error))
      throw FileError(text("prepare: articles of subwords are read more than once, so they must be files, got '",
                           file.path.string(), "'"));
    const std::size_t first = articles_.size();
    const ArticleFileFacts one = read_article_lines(file.path, rules_.format, sink);
    sink.end_article();
    files_.push_back({file, one.hash, first, articles_.size()});
    facts.bytes += one.bytes;
    facts.hash = one.hash;
    all.add(file.name);
    all.add_number(one.hash);
    replaced_ += one.replaced;
    formats_.insert(one.format);
  }
  if (std::error_code error; fs::is_directory(path, error)) facts.hash = all.value();
  sources_.push_back(std::move(facts));
  std::int64_t with_text = 0;
  for (MetArticle& article : std::span(articles_).subspan(before)) {
    if (article.bytes == 0) {
      ++empty_;
      continue;
    }
    ++with_text;
    article.split = static_cast<std::uint8_t>(given_.are_splits ? given : 0);
  }
  if (given_.are_splits && with_text == 0)
    throw FileError(text("prepare: every split needs an article, got none for ", kSplitNames.at(given), " from '",
                         path.string(), "'"));
}

/// Valid and test get articles in the order of their hashes, those with the same lines together.
void ArticleTexts::choose(const Percentages& shares) {
  require_valid(shares);
  struct Place {
    std::uint64_t order = 0, hash = 0;
    std::size_t index = 0;
    bool operator<(const Place& other) const {
      return std::tie(order, hash, index) < std::tie(other.order, other.hash, other.index);
    }
  };
  std::vector<Place> places;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < articles_.size(); ++i) {
    if (articles_[i].split == kNoSplit) continue;
    places.push_back({article_order(rules_.seed, articles_[i].lines_hash), articles_[i].lines_hash, i});
    total += articles_[i].bytes;
  }
  std::ranges::sort(places, std::less<>());
  std::array<std::int64_t, 3> bytes{}, count{};
  const auto is_full = [&](std::size_t split) {
    if (rules_.held_out) return count.at(split) >= *rules_.held_out;
    return static_cast<double>(bytes.at(split)) >= static_cast<double>(total) * shares.at(split) / 100 - 1e-6;
  };
  std::size_t split = 1;
  for (std::size_t i = 0; i < places.size(); ++i) {
    MetArticle& article = articles_[places[i].index];
    const bool copy = i > 0 && places[i - 1].hash == places[i].hash;
    copies_ += copy ? 1 : 0;
    while (!copy && split != 0 && is_full(split)) split = (split + 1) % 3;
    article.split = static_cast<std::uint8_t>(split);
    bytes.at(split) += article.bytes;
    ++count.at(split);
  }
  for (std::size_t i = 0; i < count.size(); ++i)
    if (count.at(i) == 0)
      throw FileError(text(
          "prepare: every split needs an article, got none for ", kSplitNames.at(i), " from ", places.size(),
          places.size() == 1 ? " article" : " articles", "\n  articles are not cut: give more of them, ",
          rules_.held_out ? "a smaller --held-out" : "other --split percentages", ", or --train, --valid and --test"));
}

/// Articles of valid and test that train has too, where the splits are given.
void ArticleTexts::count_shared() {
  std::vector<std::uint64_t> train;
  for (const MetArticle& article : articles_)
    if (article.split == 0) train.push_back(article.lines_hash);
  std::ranges::sort(train);
  shared_ = std::ranges::count_if(articles_, [&train](const MetArticle& article) {
    return (article.split == 1 || article.split == 2) && std::ranges::binary_search(train, article.lines_hash);
  });
}

std::vector<std::string> ArticleTexts::notes() const {
  std::vector<std::string> notes;
  notes.push_back(text(splits_[0].articles, " articles in train, ", splits_[1].articles, " in valid and ",
                       splits_[2].articles, " in test"));
  if (copies_ > 0)
    notes.push_back(text(copies_, copies_ == 1 ? " article has" : " articles have", " the lines of another one, and ",
                         copies_ == 1 ? "is" : "are", " in the same split"));
  if (shared_ > 0)
    notes.push_back(text("warning: ", shared_, shared_ == 1 ? " article" : " articles", " of valid and test ",
                         shared_ == 1 ? "is" : "are", " in train too, line by line"));
  if (empty_ > 0)
    notes.push_back(text(empty_, empty_ == 1 ? " empty article was" : " empty articles were", " left out"));
  if (replaced_ > 0)
    notes.push_back(text("warning: ", replaced_, replaced_ == 1 ? " byte that is" : " bytes that are",
                         " no UTF-8 became U+FFFD; if there are many, convert the files first, for example with iconv ",
                         "-t UTF-8"));
  return notes;
}

void ArticleTexts::read(std::size_t split, const std::function<void(std::string_view line)>& line,
                        const std::function<void()>& article, const ByteWatch& watch) const {
  std::int64_t before = 0;
  for (const MetFile& file : files_) {
    if (!file.splits.test(split)) continue;
    SplitSink sink(articles_of(file), split, line, article);
    if (read_article_lines(file.file.path, rules_.format, sink).hash != file.hash)
      throw FileError(text("prepare: '", file.file.path.string(), "' must not change while it is read, got other ",
                           "bytes than before"));
    before += sink.read();
    if (watch) watch(before, splits_.at(split).bytes);
  }
}

void require_article_text_options(const PrepareOptions& options) {
  const ArticleRules& rules = *options.articles;
  ArticleRules ours;
  ours.format = rules.format;
  ours.paths = rules.paths;
  ours.seed = rules.seed;
  ours.held_out = rules.held_out;
  if (rules != ours)
    throw UsageError(
        "prepare: articles of subwords have the options --format, --split, --held-out and --seed, got one of "
        "--pretokenized, --sentence-lines, --no-eos, --keep-numbers, --chapters and --words\n  those are of --kind "
        "word");
  if (!options.text.empty()) throw UsageError("prepare: --articles takes files and folders itself, got --text with it");
}

}  // namespace

std::unique_ptr<SubwordTexts> open_article_texts(const PrepareOptions& options) {
  require_article_text_options(options);
  return std::make_unique<ArticleTexts>(options);
}

}  // namespace engram::data
