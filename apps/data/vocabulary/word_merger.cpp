#include "apps/data/vocabulary/word_merger.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

void add_piece(std::string_view piece, bool last, std::vector<std::string>& pieces) {
  pieces.push_back(last ? std::string(piece) : text(piece, kWordGoesOn));
}

}  // namespace

WordMerger::WordMerger(MergeList list) : list_(std::move(list)) {
  for (std::size_t i = 0; i < list_.merges.size(); ++i) {
    const auto& [left, right] = list_.merges[i];
    const std::int32_t joined = symbols_.add(left + right);
    merges_.emplace(key_of(symbols_.add(left), symbols_.add(right)), Merge{static_cast<std::int32_t>(i), joined});
    // Two pairs may make the same. subword-nmt takes it apart as the first says, fastBPE as the last.
    if (list_.style == MergeStyle::fastbpe)
      made_of_.insert_or_assign(joined, i);
    else
      made_of_.emplace(joined, i);
  }
}

const WordMerger::Merge* WordMerger::merge_of(std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<WordMerger::Part> WordMerger::letters_of(std::string_view word) const {
  std::vector<Part> parts;
  const bool end_apart = list_.style == MergeStyle::v0_1;
  const auto add = [&parts](std::int32_t symbol, std::size_t end) {
    const auto at = static_cast<std::int32_t>(parts.size());
    if (at > 0) parts.back().next = at;
    parts.push_back({symbol, end, at - 1, -1});
  };
  for (std::size_t at = 0; at < word.size();) {
    std::size_t end = at + 1;
    while (end < word.size() && !is_utf8_start(word[end])) ++end;
    const std::string_view letter = word.substr(at, end - at);
    add(end == word.size() && !end_apart ? symbols_.find(text(letter, kWordEnd)) : symbols_.find(letter), end);
    at = end;
  }
  if (end_apart) add(symbols_.find(kWordEnd), word.size());
  return parts;
}

void WordMerger::join(std::vector<Part>& parts) const {
  struct Candidate {
    std::int32_t rank, at, left, right;  // `at`: the left part; the symbols tell whether it is still so
    bool operator>(const Candidate& other) const { return std::tie(rank, at) > std::tie(other.rank, other.at); }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto part = [&parts](std::int32_t at) -> Part& { return parts[static_cast<std::size_t>(at)]; };
  const auto look_at = [&](std::int32_t at) {
    if (at < 0 || part(at).next < 0) return;
    const std::int32_t left = part(at).symbol, right = part(part(at).next).symbol;
    if (const Merge* const merge = merge_of(left, right)) candidates.push({merge->rank, at, left, right});
  };
  for (std::int32_t at = 0; at < static_cast<std::int32_t>(parts.size()); ++at) look_at(at);
  std::vector<std::int32_t> joined;
  while (!candidates.empty()) {
    // What arises by joining a pair is not looked at before the pair has been joined everywhere.
    joined.clear();
    for (const std::int32_t rank = candidates.top().rank; !candidates.empty() && candidates.top().rank == rank;) {
      const Candidate candidate = candidates.top();
      candidates.pop();
      Part& left = part(candidate.at);
      if (left.symbol != candidate.left || left.next < 0 || part(left.next).symbol != candidate.right) continue;
      Part& right = part(left.next);
      left.symbol = merge_of(candidate.left, candidate.right)->joined;
      left.end = right.end;
      right.symbol = -1;
      left.next = right.next;
      if (left.next >= 0) part(left.next).before = candidate.at;
      joined.push_back(candidate.at);
    }
    for (const std::int32_t at : joined) {
      look_at(part(at).before);
      look_at(at);
    }
  }
}

void WordMerger::take_apart(std::string_view piece, bool last, const WordTable& allowed,
                            std::vector<std::string>& pieces) const {
  const auto take = [&](std::string_view half, bool half_last) {
    if (allowed.find(half_last ? std::string(half) : text(half, kWordGoesOn)) >= 0)
      add_piece(half, half_last, pieces);
    else
      take_apart(half, half_last, allowed, pieces);
  };
  const auto found = made_of_.find(symbols_.find(last ? text(piece, kWordEnd) : std::string(piece)));
  if (found == made_of_.end()) return add_piece(piece, last, pieces);
  const auto& [left, right] = list_.merges[found->second];
  take(left, false);
  take(last ? std::string_view(right).substr(0, right.size() - std::min(right.size(), kWordEnd.size())) : right, last);
}

void WordMerger::split(std::string_view word, const WordTable* allowed, std::vector<std::string>& pieces) const {
  std::vector<Part> parts = letters_of(word);
  pieces.clear();
  const bool one_letter = parts[0].end == word.size();
  if (!one_letter) join(parts);
  for (std::size_t at = 0, begin = 0; begin < word.size();) {
    const std::size_t end = parts[at].end;
    const bool last = end == word.size();
    const std::string_view piece = word.substr(begin, end - begin);
    if (allowed == nullptr || allowed->find(last ? std::string(piece) : text(piece, kWordGoesOn)) >= 0)
      add_piece(piece, last, pieces);
    else if (one_letter)
      add_piece(piece, last, pieces);
    else
      take_apart(piece, last, *allowed, pieces);
    at = static_cast<std::size_t>(std::max(parts[at].next, 0));
    begin = end;
  }
  // Taking apart may leave a word's end without a letter, where that is one of its own.
  if (pieces.back().empty()) pieces.pop_back();
}

}  // namespace engram::data
