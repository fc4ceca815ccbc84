#include "apps/data/vocabulary/merge_list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "apps/data/files/read_file.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/word_table.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::string_view kVersionLine = "#version:";

/// The lines of a file in fields, as the two programs cut them.
class FieldLines {
 public:
  FieldLines(std::string_view bytes, const std::filesystem::path& path, std::int64_t first_line)
      : rest_(bytes), path_(path), number_(first_line - 1) {}

  bool next() {
    if (rest_.empty()) return false;
    line_ = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line_.size() + 1, rest_.size()));
    ++number_;
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (const std::size_t wrong = find_invalid_utf8(line_); wrong < line_.size())
      refuse("be UTF-8", text(byte_text(line_[wrong]), " at byte ", wrong, " of the line"));
    fields_.clear();
    for (std::size_t begin = 0; begin < line_.size();) {
      const std::size_t end = std::min(line_.find(' ', begin), line_.size());
      if (end > begin) fields_.push_back(line_.substr(begin, end - begin));
      begin = end + 1;
    }
    return true;
  }
  std::string_view line() const { return line_; }
  const std::vector<std::string_view>& fields() const { return fields_; }

  [[noreturn]] void refuse(std::string_view rule, std::string_view fact, std::string_view advice = {}) const {
    throw FileError(
        text("byte pairs: '", path_.string(), "' must ", rule, ", got ", fact, " in line ", number_, advice));
  }
  [[noreturn]] void refuse_line(std::string_view rule) const {
    constexpr std::size_t kShown = 60;
    std::size_t shown = std::min(line_.size(), kShown);
    while (shown < line_.size() && !is_utf8_start(line_[shown])) --shown;
    refuse(rule, line_.empty() ? "nothing" : text("'", line_.substr(0, shown), shown < line_.size() ? "...'" : "'"));
  }

 private:
  std::string_view rest_, line_;
  std::vector<std::string_view> fields_;
  const std::filesystem::path& path_;
  std::int64_t number_;
};

std::optional<std::int64_t> count_of(std::string_view field) {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), count);
  if (error != std::errc() || end != field.data() + field.size() || count < 0) return std::nullopt;
  return count;
}

/// The style that the first line says; whether it says nothing else.
bool is_version_line(const FieldLines& lines, MergeStyle& style) {
  const std::vector<std::string_view>& fields = lines.fields();
  if (lines.line().starts_with(kVersionLine)) {
    if (fields.back() == "0.2")
      style = MergeStyle::v0_2;
    else if (fields.back() == "0.1")
      style = MergeStyle::v0_1;
    else
      lines.refuse_line("be codes of subword-nmt of the version 0.1 or 0.2");
    return true;
  }
  style = fields.size() == 3 ? MergeStyle::fastbpe : MergeStyle::v0_1;
  return false;
}

}  // namespace

MergeList parse_merges(std::string_view bytes, const std::filesystem::path& path, std::int64_t first_line) {
  MergeList list;
  WordTable pairs;
  FieldLines lines(bytes, path, first_line);
  bool known = false, is_vocabulary = true;
  while (lines.next()) {
    if (!std::exchange(known, true) && is_version_line(lines, list.style)) continue;
    const std::vector<std::string_view>& fields = lines.fields();
    const bool counted = list.style == MergeStyle::fastbpe;
    if (fields.size() != (counted ? 3 : 2) || (counted && !count_of(fields[2])))
      lines.refuse_line(counted ? "have two subwords and a count in every line"
                                : "have two subwords in every line, or two and a count (fastBPE) in all of them");
    const std::string_view left = fields[0], right = fields[1];
    if (left.size() + right.size() > MergeList::kLongest)
      lines.refuse(text("join pairs to at most ", MergeList::kLongest, " bytes"),
                   text("a pair of ", left.size() + right.size()));
    if (text(left, right) == kWordEnd) lines.refuse_line(text("not join a pair to ", kWordEnd, ", which ends words"));
    const std::int64_t before = pairs.size();
    if (pairs.add(text(left, " ", right)) < before) lines.refuse_line("have every pair once");
    list.merges.emplace_back(left, right);
    is_vocabulary = is_vocabulary && list.style == MergeStyle::v0_1 && count_of(right);
  }
  if (list.merges.empty())
    throw FileError(text("byte pairs: '", path.string(), "' must have a pair to join in every line, got no pair"));
  if (is_vocabulary)
    throw FileError(text("byte pairs: '", path.string(),
                         "' must have pairs to join, got a vocabulary: a subword and a ", "count in every line"));
  return list;
}

MergeList read_merges(const std::filesystem::path& path) { return parse_merges(read_bytes(path), path); }

std::vector<CountedSubword> parse_subword_list(std::string_view bytes, const std::filesystem::path& path,
                                               std::int64_t least, std::int64_t first_line) {
  std::vector<CountedSubword> list;
  WordTable known;
  FieldLines lines(bytes, path, first_line);
  while (lines.next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    const std::optional<std::int64_t> count = fields.size() == 2 ? count_of(fields[1]) : std::nullopt;
    if (!count) lines.refuse_line("have a subword and its count in every line");
    const std::int64_t before = known.size();
    if (known.add(fields[0]) < before) lines.refuse_line("have every subword once");
    if (*count >= least) list.push_back({std::string(fields[0]), *count});
  }
  if (list.empty())
    throw FileError(text("byte pairs: '", path.string(), "' must have subwords with a count of at least ", least,
                         ", got none among ", known.size()));
  return list;
}

std::vector<CountedSubword> read_subword_list(const std::filesystem::path& path, std::int64_t least) {
  return parse_subword_list(read_bytes(path), path, least);
}

}  // namespace engram::data
