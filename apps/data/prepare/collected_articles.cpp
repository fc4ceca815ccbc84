#include "apps/data/prepare/collected_articles.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram::data {

CollectedArticles::CollectedArticles(bool sentence_end) : sentence_end_(sentence_end) {
  for (const std::string_view mark : {kSentenceEnd, kNumber, kUnknownWord}) words_.add(mark);
}

void CollectedArticles::begin_article(std::string name, bool goes_on) {
  // Nothing between a book's title and its first chapter is no article that the reader would miss.
  end_article(/*counted=*/!goes_on);
  CollectedArticle article{.name = std::move(name), .first = std::ssize(ids_)};
  article.goes_on = goes_on && !articles_.empty() && articles_.back().name == article.name;
  articles_.push_back(std::move(article));
}

void CollectedArticles::add_text(std::int64_t bytes, std::int64_t words) {
  articles_.back().bytes += bytes;
  articles_.back().words += words;
}

void CollectedArticles::add_sentence(std::vector<std::string>& words) {
  for (const std::string& word : words) ids_.push_back(words_.add(word));
  if (sentence_end_) ids_.push_back(kEndId);
  ++articles_.back().sentences;
}

void CollectedArticles::end_article(bool counted) {
  if (articles_.empty()) return;
  CollectedArticle& last = articles_.back();
  last.tokens = std::ssize(ids_) - last.first;
  if (last.tokens > 0) return;
  empty_ += counted ? 1 : 0;
  articles_.pop_back();
}

std::uint64_t article_order(std::uint64_t seed, std::uint64_t hash) {
  // Keeps these numbers apart from those of other things with the same seed: "ARTS".
  constexpr std::uint32_t kArticles = 0x41525453;
  const auto low = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  // The last letters of a text hardly reach the high bits of FNV-1a, which the order goes by.
  const PhiloxBlock mixed = philox({{low(hash), low(hash >> 32), 0, kArticles}}, low(seed), low(seed >> 32));
  return std::uint64_t{mixed.word[1]} << 32 | mixed.word[0];
}

std::uint64_t article_hash(std::uint64_t seed, std::string_view name) { return article_order(seed, hash_of(name)); }

void split_articles(std::vector<CollectedArticle>& articles, std::uint64_t seed, const Percentages& shares,
                    std::optional<std::int64_t> held_out) {
  require_valid(shares);
  struct Unit {
    std::uint64_t hash = 0;
    std::size_t first = 0, end = 0;
    std::int64_t tokens = 0;
  };
  std::vector<Unit> units;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < articles.size(); ++i) {
    if (units.empty() || !articles[i].goes_on) units.push_back({article_hash(seed, articles[i].name), i, i, 0});
    units.back().end = i + 1;
    units.back().tokens += articles[i].tokens;
    total += articles[i].tokens;
  }
  std::ranges::stable_sort(units, {}, &Unit::hash);
  std::array<std::int64_t, 3> tokens{}, count{};
  const auto wanted = [&](std::size_t split) { return static_cast<double>(total) * shares.at(split) / 100 - 1e-6; };
  const auto is_full = [&](std::size_t split) {
    return held_out ? count.at(split) >= *held_out : static_cast<double>(tokens.at(split)) >= wanted(split);
  };
  std::size_t split = 1;
  for (const Unit& unit : units) {
    while (split != 0 && is_full(split)) split = (split + 1) % 3;
    for (std::size_t i = unit.first; i < unit.end; ++i) articles[i].split = split;
    tokens.at(split) += unit.tokens;
    count.at(split) += static_cast<std::int64_t>(unit.end - unit.first);
  }
  for (std::size_t i = 0; i < count.size(); ++i)
    if (count.at(i) == 0)
      throw FileError(text("prepare: every split needs an article, got none for ", kSplitNames.at(i), " from ",
                           units.size(), units.size() == 1 ? " article" : " articles",
                           "\n  articles are not cut: give more of them, other --split percentages, ",
                           held_out ? "a smaller --held-out, " : "", "or --train, ", "--valid and --test"));
}

ArticleVocabulary given_vocabulary(const CollectedArticles& articles, const WordVocabulary& vocabulary) {
  const WordTable& words = articles.words();
  ArticleVocabulary given{vocabulary, std::vector<std::int32_t>(static_cast<std::size_t>(words.size()))};
  std::vector<bool> known(given.ids.size());
  for (std::int32_t id = 0; id < words.size(); ++id) {
    const std::int32_t own = vocabulary.id_of(words[id]);
    known[static_cast<std::size_t>(id)] = own >= 0;
    given.ids[static_cast<std::size_t>(id)] = own >= 0 ? own : vocabulary.unknown_token();
  }
  std::vector<bool> told(known.size());
  for (const CollectedArticle& article : articles.articles()) {
    if (article.split != 0) continue;
    for (const std::int32_t word :
         std::span(articles.ids())
             .subspan(static_cast<std::size_t>(article.first), static_cast<std::size_t>(article.tokens))) {
      const auto at = static_cast<std::size_t>(word);
      if (!known[at] && !told[at]) ++given.left_out;
      told[at] = true;
    }
  }
  return given;
}

ArticleVocabulary collect_vocabulary(const CollectedArticles& articles, std::int64_t most, std::int64_t min_count,
                                     bool sentence_end) {
  constexpr std::int32_t kMarks = 3;
  const WordTable& words = articles.words();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(words.size()));
  std::vector<std::uint64_t> hashes(counts.size());
  for (std::int32_t id = 0; id < words.size(); ++id) hashes[static_cast<std::size_t>(id)] = hash_of(words[id]);
  Fnv1a64 source;
  for (const CollectedArticle& article : articles.articles()) {
    if (article.split != 0) continue;
    for (const std::int32_t id :
         std::span(articles.ids())
             .subspan(static_cast<std::size_t>(article.first), static_cast<std::size_t>(article.tokens))) {
      ++counts[static_cast<std::size_t>(id)];
      source.add_number(hashes[static_cast<std::size_t>(id)]);
    }
  }
  const auto count_of = [&counts](std::int32_t id) -> std::int64_t& { return counts[static_cast<std::size_t>(id)]; };
  const auto more_frequent = [&](std::int32_t a, std::int32_t b) {
    return count_of(a) != count_of(b) ? count_of(a) > count_of(b) : words[a] < words[b];
  };
  std::vector<std::int32_t> order;
  for (std::int32_t id = kMarks; id < words.size(); ++id)
    if (count_of(id) > 0) order.push_back(id);
  std::ranges::sort(order, more_frequent);
  const auto rare = std::ranges::find_if(order, [&](std::int32_t id) { return count_of(id) < min_count; });
  std::size_t kept = static_cast<std::size_t>(rare - order.begin());
  if (most > 0) kept = std::min(kept, static_cast<std::size_t>(most - kMarks));
  for (std::size_t i = kept; i < order.size(); ++i) count_of(CollectedArticles::kUnknownId) += count_of(order[i]);
  const auto left_out = static_cast<std::int64_t>(order.size() - kept);
  order.resize(kept);
  for (std::int32_t mark = 0; mark < kMarks; ++mark) order.push_back(mark);
  std::ranges::sort(order, more_frequent);

  WordTable table;
  std::vector<std::int32_t> ids(counts.size(), -1);
  for (const std::int32_t id : order) ids[static_cast<std::size_t>(id)] = table.add(words[id]);
  std::ranges::replace(ids, -1, ids[CollectedArticles::kUnknownId]);
  source.add_number(static_cast<std::uint64_t>(most));
  source.add_number(static_cast<std::uint64_t>(min_count));
  WordMarks marks{.end_of_line = std::string(kSentenceEnd), .unknown = std::string(kUnknownWord)};
  return {WordVocabulary(std::move(table), sentence_end, source.value(), std::move(marks)), std::move(ids), left_out};
}

}  // namespace engram::data
