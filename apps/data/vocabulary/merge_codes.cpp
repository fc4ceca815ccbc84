#include "apps/data/vocabulary/merge_codes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::int32_t kUnknownId = 0, kEndId = 1, kMarksBefore = 2;
constexpr std::string_view kSubwordsLine = "subwords", kLimited = "limited", kCollected = "collected";

std::string file_of(const MergeList& merges, const std::vector<CountedSubword>& list, bool limited) {
  std::string file = text(MergeCodes::kFormat, name_of(merges.style), " ", merges.merges.size(), "\n");
  const bool counted = merges.style == MergeStyle::fastbpe;
  if (merges.style == MergeStyle::v0_2) file += "#version: 0.2\n";
  for (const auto& [left, right] : merges.merges) file += text(left, " ", right, counted ? " 0\n" : "\n");
  file += text(kSubwordsLine, " ", limited ? kLimited : kCollected, "\n");
  for (const CountedSubword& subword : list) file += text(subword.written, " ", subword.count, "\n");
  return file;
}

/// Takes a line off the beginning, with its end.
std::string_view take_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  return line;
}

}  // namespace

MergeCodes::MergeCodes(MergeList merges, const std::vector<CountedSubword>& list, bool limited)
    : merger_(std::move(merges)), limited_(limited) {
  model_ = file_of(merger_.list(), list, limited);
  words_stand_apart_ = true;
  end_token_ = kEndId;
  subwords_.push_back({Subword::Role::unknown, std::string(kReplacement)});
  subwords_.push_back({Subword::Role::mark, {}});
  for (const CountedSubword& subword : list) {
    written_.add(subword.written);
    std::string_view bytes = subword.written;
    const bool joins = bytes.ends_with(kWordGoesOn);
    if (joins) bytes.remove_suffix(kWordGoesOn.size());
    subwords_.push_back({Subword::Role::text, std::string(bytes), joins});
  }
}

MergeCodes MergeCodes::parse(std::string_view bytes, const std::filesystem::path& source) {
  const auto reject = [&source](std::string_view fact) {
    throw FileError(text("byte pairs: '", source.string(), "' must be codes that engram prepare wrote, got ", fact));
  };
  std::string_view rest = bytes;
  if (!rest.starts_with(kFormat)) reject("another file");
  rest.remove_prefix(kFormat.size());
  const std::string_view facts = take_line(rest);
  const std::size_t space = std::min(facts.find(' '), facts.size());
  std::int64_t count = -1;
  if (space < facts.size()) std::from_chars(facts.data() + space + 1, facts.data() + facts.size(), count);
  if (count < 1) reject(text("'", facts, "' in line 2"));
  const std::string_view pairs = rest;
  const std::int64_t lines = count + (facts.substr(0, space) == name_of(MergeStyle::v0_2) ? 1 : 0);
  for (std::int64_t i = 0; i < lines && !rest.empty(); ++i) take_line(rest);
  constexpr std::int64_t kLinesBefore = 2;
  MergeList merges = parse_merges(pairs.substr(0, pairs.size() - rest.size()), source, kLinesBefore + 1);
  const std::string_view middle = take_line(rest);
  const bool limited = middle == text(kSubwordsLine, " ", kLimited);
  if (!limited && middle != text(kSubwordsLine, " ", kCollected))
    reject(text("'", middle, "' in line ", kLinesBefore + lines + 1));
  if (name_of(merges.style) != facts.substr(0, space)) reject("pairs of another program than it says");
  return {std::move(merges), parse_subword_list(rest, source, 0, kLinesBefore + lines + 2), limited};
}

void MergeCodes::encode(std::string_view text_bytes, std::vector<std::int32_t>& ids) const {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < text_bytes.size();) {
    const std::size_t end = std::min(text_bytes.find(' ', begin), text_bytes.size());
    if (end > begin) {
      merger_.split(text_bytes.substr(begin, end - begin), limited_ ? &written_ : nullptr, pieces);
      for (const std::string& piece : pieces) {
        const std::int32_t known = written_.find(piece);
        ids.push_back(known < 0 ? kUnknownId : known + kMarksBefore);
      }
    }
    begin = end + 1;
  }
}

}  // namespace engram::data
