#include "apps/data/vocabulary/subword_counts.hpp"

#include <unordered_set>

#include "apps/data/files/hash.hpp"
#include "apps/data/text/utf8.hpp"

namespace engram::data {
namespace {

/// Bytes of a character at the beginning of `rest` that is not learned; 0 if it is.
std::size_t skipped_length(std::string_view rest) {
  if (rest[0] == '\t' || rest[0] == '\0') return 1;
  return rest.starts_with("\u2581") || rest.starts_with("\u2585") ? 3 : 0;
}

}  // namespace

void SubwordCounts::add(std::string_view word) {
  if (word.empty()) return;
  const auto id = static_cast<std::size_t>(words_.add(word));
  if (id == counts_.size()) counts_.push_back(0);
  ++counts_[id];
}

void SubwordCounts::add_line(std::string_view line) {
  std::size_t begin = 0, at = 0;
  while (at < line.size()) {
    if (const std::size_t skipped = skipped_length(line.substr(at)); skipped > 0) {
      add(line.substr(begin, at - begin));
      begin = at += skipped;
      continue;
    }
    if (at > begin && (line[at] == ' ' || (at - begin >= kLongest - 4 && is_utf8_start(line[at])))) {
      add(line.substr(begin, at - begin));
      begin = at;
    }
    ++at;
  }
  add(line.substr(begin));
}

std::int64_t SubwordCounts::letters() const {
  std::unordered_set<std::string_view> letters;
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::string_view word = words_[i];
    for (std::size_t at = 0; at < word.size();) {
      std::size_t end = at + 1;
      while (end < word.size() && !is_utf8_start(word[end])) ++end;
      letters.insert(word.substr(at, end - at));
      at = end;
    }
  }
  return static_cast<std::int64_t>(letters.size());
}

std::uint64_t SubwordCounts::hash() const {
  Fnv1a64 hash;
  for (std::int64_t i = 0; i < size(); ++i) {
    hash.add(words_[i]);
    hash.add("\n");  // no word has one inside
    hash.add_number(static_cast<std::uint64_t>(count(i)));
  }
  return hash.value();
}

}  // namespace engram::data
