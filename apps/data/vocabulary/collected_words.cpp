#include "apps/data/vocabulary/collected_words.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "apps/data/files/hash.hpp"
#include "apps/data/text/line_words.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// Words in the order in which they were first seen, with their counts.
struct Counts {
  WordTable words;
  std::vector<std::int64_t> of;

  void add(std::string_view word) {
    const auto id = static_cast<std::size_t>(words.add(word));
    if (id == of.size()) of.push_back(0);
    ++of[id];
  }
};

void count_words(const WordSplit& split, bool end_of_line, Counts& counts, const ByteWatch& watch) {
  using Piece = LineWordReader::Piece;
  constexpr std::int64_t kBetween = 1 << 16;  // words
  LineWordReader reader(split.text);
  std::int64_t words = 0;
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next()) {
    if (piece == Piece::word && ++words % kBetween == 0 && watch)
      watch(static_cast<std::int64_t>(reader.word_at()), std::ssize(split.text));
    if (piece == Piece::word)
      counts.add(reader.word());
    else if (end_of_line)
      counts.add(WordVocabulary::kEndOfLine);
  }
  if (end_of_line && split.end_missing) counts.add(WordVocabulary::kEndOfLine);
}

struct Entry {
  std::int64_t count = 0;
  std::int64_t first_seen = 0;  // rank
  std::string_view word;
};

std::uint64_t source_hash(std::span<const WordSplit> splits, const WordRules& rules) {
  Fnv1a64 hash;
  for (const WordSplit& split : splits) hash.add(split.text);
  hash.add_number(rules.end_of_line ? 1 : 0);
  hash.add(name_of(rules.ties));
  hash.add(name_of(rules.unseen));
  hash.add_number(static_cast<std::uint64_t>(rules.min_count));
  if (rules.end_first) hash.add("eos first");
  return hash.value();
}

}  // namespace

CollectedWords collect_words(std::span<const WordSplit> splits, const WordRules& rules, const ByteWatch& watch) {
  if (rules.min_count < 1) throw UsageError(text("prepare: --min-count must be at least 1, got ", rules.min_count));
  if (rules.end_first && !rules.end_of_line)
    throw UsageError("prepare: --eos-id first works with --eol keep, got it where line ends are no tokens");
  Counts counts;
  for (const WordSplit& split : splits) count_words(split, rules.end_of_line, counts, watch);
  std::vector<Entry> entries;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  Entry unknown{0, kNever, WordVocabulary::kUnknown};
  WordTable rare;
  std::int64_t rare_tokens = 0;
  for (std::int64_t i = 0; i < counts.words.size(); ++i) {
    const Entry entry{counts.of[static_cast<std::size_t>(i)], i, counts.words[i]};
    const bool is_end = rules.end_of_line && entry.word == WordVocabulary::kEndOfLine;
    const bool is_unknown = entry.word == unknown.word, is_rare = !is_end && entry.count < rules.min_count;
    if (!is_unknown && !is_rare) {
      entries.push_back(entry);
      continue;
    }
    unknown.count += entry.count;
    unknown.first_seen = std::min(unknown.first_seen, i);
    if (is_unknown) continue;
    rare.add(entry.word);
    rare_tokens += entry.count;
  }
  const bool unknown_added = unknown.count == 0 && rules.unseen == UnseenWords::unk;
  if (unknown.count > 0 || unknown_added) entries.push_back(unknown);

  std::ranges::sort(entries, [&rules](const Entry& a, const Entry& b) {
    if (a.count != b.count) return a.count > b.count;
    return rules.ties == TieOrder::later ? a.first_seen > b.first_seen : a.first_seen < b.first_seen;
  });
  WordTable words;
  if (rules.end_first) words.add(WordVocabulary::kEndOfLine);
  for (const Entry& entry : entries) words.add(entry.word);
  return {WordVocabulary(std::move(words), rules.end_of_line, source_hash(splits, rules)), std::move(rare), rare_tokens,
          unknown_added};
}

}  // namespace engram::data
