#include "apps/data/text/streamed_text.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/text/line_pieces.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error) && !fs::is_regular_file(path, error))
    throw FileError(
        text("prepare: a text of subwords is read more than once, so it must be a file, got '", path.string(), "'"));
  const LinePieces opened(path);  // says what is wrong with a file that cannot be read
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) throw FileError(text("prepare: '", path.string(), "' must be a file, got '", error.message(), "'"));
  if (bytes == 0) throw FileError(text("prepare: a text must not be empty, got 0 bytes in '", path.string(), "'"));
  return static_cast<std::int64_t>(bytes);
}

void require_utf8(std::string_view piece, const LinePieces& pieces, std::int64_t lines_before, const fs::path& path) {
  const std::size_t wrong = find_invalid_utf8(piece);
  if (wrong == piece.size()) return;
  throw FileError(text("prepare: a text of subwords must be UTF-8, got ", byte_text(piece[wrong]), " at byte ",
                       pieces.first_byte() + static_cast<std::int64_t>(wrong), " in line ",
                       lines_before + 1 + std::ranges::count(piece.substr(0, wrong), '\n'), " of '", path.string(), "'",
                       "\n  convert the file first, for example with iconv -t UTF-8"));
}

/// Bytes of `rest`, which begins a line at `at` of the file, that are before `end`, moved on to a line start.
std::size_t bytes_before(std::string_view rest, std::int64_t at, std::int64_t end) {
  if (end <= at) return 0;
  if (end - at > std::ssize(rest)) return rest.size();
  const std::size_t found = rest.find('\n', static_cast<std::size_t>(end - at) - 1);
  return found == std::string_view::npos ? rest.size() : found + 1;
}

}  // namespace

StreamedText::StreamedText(const fs::path& path, const Percentages& percentages, const PrepareWatch& watch) {
  require_valid(percentages);
  const std::array<std::int64_t, 4> cuts = cuts_of(size_of(path), percentages);
  add_file(path, 0, {cuts[1], cuts[2], std::numeric_limits<std::int64_t>::max()}, watch);
  require_bytes();
}

StreamedText::StreamedText(const std::array<std::vector<fs::path>, 3>& files, const PrepareWatch& watch) {
  for (const std::vector<fs::path>& split : files)
    for (const fs::path& path : split) size_of(path);
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const fs::path& path : files.at(i)) add_file(path, i, {std::numeric_limits<std::int64_t>::max()}, watch);
  require_bytes();
}

void StreamedText::add_file(const fs::path& path, std::size_t first, std::vector<std::int64_t> ends,
                            const PrepareWatch& watch) {
  const std::int64_t bytes = size_of(path);
  watch.begin(text("reading '", path.string(), "'"));
  LinePieces pieces(path);
  std::size_t part = 0;
  std::array<Fnv1a64, 3> hashes;
  std::int64_t lines = 0, at = 0;
  bool signed_utf8 = false;
  for (std::size_t i = 0; i < ends.size(); ++i) splits_.at(first + i).parts.push_back({.source = sources_.size()});
  bool end_missing = false;
  for (std::string piece; pieces.next(piece); watch.at(at, bytes)) {
    require_utf8(piece, pieces, lines, path);
    lines += std::ranges::count(piece, '\n');
    if (at == 0) signed_utf8 = piece.starts_with(kByteOrderMark);
    for (std::string_view rest = piece; !rest.empty();) {
      const std::size_t length = bytes_before(rest, at, ends[part]);
      StreamedSplit& split = splits_.at(first + part);
      const std::string_view taken = rest.substr(0, length);
      hashes.at(part).add(taken);
      split.words += count_words(taken);
      split.bytes += std::ssize(taken);
      split.parts.back().bytes += std::ssize(taken);
      if (!taken.empty()) end_missing = taken.back() != '\n';
      rest.remove_prefix(length);
      at += std::ssize(taken);
      if (at >= ends[part] && part + 1 < ends.size()) {
        ++part;
        splits_.at(first + part).parts.back().first_byte = at;
      }
    }
  }
  // Parts end at line ends, but for the last one.
  splits_.at(first + part).end_missing |= end_missing;
  for (std::size_t i = 0; i < ends.size(); ++i) splits_.at(first + i).parts.back().hash = hashes.at(i).value();
  sources_.push_back({path, pieces.bytes(), pieces.hash(), signed_utf8});
}

void StreamedText::require_bytes() const {
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    if (splits_[i].bytes > 0) continue;
    const StreamedSource& source = sources_[splits_[i].parts[0].source];
    throw FileError(text("prepare: every split needs text, got none for ", kSplitNames[i], " from '",
                         source.path.string(), "' (", source.bytes,
                         " bytes)\n  give a longer text or other --split percentages; texts are cut at line ends ",
                         "only"));
  }
}

void StreamedText::read_lines(std::size_t split, const std::function<void(std::string_view line)>& visit,
                              const ByteWatch& watch) const {
  std::int64_t before = 0;
  for (const StreamedPart& part : splits_.at(split).parts) {
    const auto all_watch = [&](std::int64_t done, std::int64_t) {
      if (watch) watch(before + done, splits_[split].bytes);
    };
    read_part(part, split, visit, all_watch);
    before += part.bytes;
  }
}

void StreamedText::read_part(const StreamedPart& part, std::size_t split,
                             const std::function<void(std::string_view line)>& visit, const ByteWatch& watch) const {
  const fs::path& path = sources_[part.source].path;
  LinePieces pieces(path, part.first_byte, part.bytes);
  for (std::string piece; pieces.next(piece);) {
    for (std::string_view rest = piece; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      visit(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    watch(pieces.bytes(), part.bytes);
  }
  if (pieces.bytes() != part.bytes || pieces.hash() != part.hash)
    throw FileError(text("prepare: '", path.string(), "' must not change while it is read, got other bytes for ",
                         kSplitNames[split], " than before"));
}

}  // namespace engram::data
