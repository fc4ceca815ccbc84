#include "apps/data/vocabulary/merged_counts.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace engram::data {
namespace {

void count_one(WordTable& table, std::vector<std::int64_t>& counts, std::string_view word, std::int64_t times) {
  const auto id = static_cast<std::size_t>(table.add(word));
  if (id == counts.size()) counts.push_back(0);
  counts[id] += times;
}

}  // namespace

void MergedCounts::add_line(std::string_view line) {
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) {
      const std::int64_t before = words_.size();
      count_one(words_, word_counts_, line.substr(begin, end - begin), 1);
      if (words_.size() > before) letters_ += static_cast<std::int64_t>(end - begin);
    }
    begin = end + 1;
  }
  if (words_.size() >= kMostWords || letters_ >= kMostLetters) add_words();
}

void MergedCounts::add_words() {
  std::vector<std::string> pieces;
  for (std::int64_t i = 0; i < words_.size(); ++i) {
    merger_.split(words_[i], nullptr, pieces);
    for (const std::string& piece : pieces)
      count_one(subwords_, counts_, piece, word_counts_[static_cast<std::size_t>(i)]);
  }
  words_ = WordTable();
  word_counts_.clear();
  letters_ = 0;
}

std::vector<CountedSubword> MergedCounts::list(std::int64_t least) {
  add_words();
  std::vector<CountedSubword> list;
  for (std::int64_t i = 0; i < subwords_.size(); ++i)
    if (const std::int64_t count = counts_[static_cast<std::size_t>(i)]; count >= least)
      list.push_back({std::string(subwords_[i]), count});
  std::ranges::sort(list, [](const CountedSubword& a, const CountedSubword& b) {
    return a.count != b.count ? a.count > b.count : a.written < b.written;
  });
  return list;
}

}  // namespace engram::data
