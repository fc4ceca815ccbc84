#include "apps/data/prepare/listed_encoder.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "apps/data/text/line_pieces.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {

namespace fs = std::filesystem;

void MissingWords::add(std::string_view word, std::string_view place) {
  if (count_++ == 0) first_ = place;
  if (const auto found = words_.find(word); found != words_.end())
    ++found->second;
  else
    words_.emplace(word, 1);
}

std::string MissingWords::told() const {
  constexpr std::size_t kTold = 5;
  std::vector<std::pair<std::string_view, std::int64_t>> most(words_.begin(), words_.end());
  std::ranges::stable_sort(most, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string list;
  for (std::size_t i = 0; i < std::min(kTold, most.size()); ++i)
    list +=
        text(i > 0 ? ", " : "", "'", most[i].first, "'", most[i].second > 1 ? text(" ", most[i].second, " times") : "");
  return text(count_, " that ", count_ == 1 ? "is" : "are", " not, ", words_.size(), " different: ", list,
              most.size() > kTold ? ", ..." : "", "; the first is in ", first_);
}

ListedEncoder::ListedEncoder(const ListedWords& listed, const WordRules& rules, SplitSummary& split,
                             TokenFileWriter& writer)
    : listed_(listed), rules_(rules), split_(split), writer_(writer) {
  if (rules_.sentences == SentenceMarks::between) put_mark();
}

SourceFacts ListedEncoder::add_file(const fs::path& path, const ByteWatch& watch) {
  std::error_code ignored;
  const std::uintmax_t bytes = fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0;
  LinePieces pieces(path);
  path_ = path.string();
  line_ = 1;
  bool end_missing = false;
  for (std::string piece; pieces.next(piece);) {
    end_missing = !is_at_line_start(piece);
    add_piece(piece, pieces.first_byte());
    watch(pieces.bytes(), static_cast<std::int64_t>(bytes));
  }
  end_text(end_missing);
  split_.bytes += pieces.bytes();
  return {path_, pieces.bytes(), pieces.hash()};
}

void ListedEncoder::add_text(std::string_view part, const std::string& path, std::int64_t first_line,
                             const ByteWatch& watch) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  path_ = path;
  line_ = first_line;
  for (std::size_t begin = 0; begin < part.size();) {
    const std::size_t line_end = part.find('\n', std::min(begin + kPiece, part.size()));
    const std::size_t end = line_end == std::string_view::npos ? part.size() : line_end + 1;
    std::string piece(part.substr(begin, end - begin));
    add_piece(piece, static_cast<std::int64_t>(begin));
    watch(static_cast<std::int64_t>(end), std::ssize(part));
    begin = end;
  }
  end_text(!part.empty() && !is_at_line_start(part));
  split_.bytes += std::ssize(part);
}

void ListedEncoder::add_piece(std::string& piece, std::int64_t first_byte) {
  if (const std::size_t wrong = find_invalid_utf8(piece); wrong < piece.size())
    throw FileError(text("prepare: a text of words must be UTF-8, got ", byte_text(piece[wrong]), " in line ",
                         line_ + line_number(piece, wrong) - 1, " of '", path_, "' (byte ",
                         first_byte + static_cast<std::int64_t>(wrong), ")",
                         "\n  convert the file first, for example with iconv -t UTF-8"));
  if (first_byte == 0 && piece.starts_with("\xef\xbb\xbf")) piece.erase(0, 3);  // a byte order mark is no letter
  if (rules_.lower) lower_ascii(piece);
  LineWordReader reader(piece);
  for (auto part = reader.next(); part != LineWordReader::Piece::text_end; part = reader.next()) {
    if (part == LineWordReader::Piece::line_end) {
      end_line();
      ++line_;
    } else {
      begin_line();
      put_word(reader.word());
    }
    if (ids_.size() >= kWritten) write();
  }
}

void ListedEncoder::begin_line() {
  if (!std::exchange(line_open_, true) && rules_.sentences == SentenceMarks::around) put_mark();
}

void ListedEncoder::end_line() {
  begin_line();  // of a blank one
  line_open_ = false;
  if (listed_.vocabulary.end_token() >= 0) put_mark();
}

void ListedEncoder::end_text(bool end_missing) {
  if (end_missing) {
    end_line();
    split_.end_appended = listed_.vocabulary.end_token() >= 0;
  }
  write();
}

void ListedEncoder::put_mark() {
  const std::int32_t mark = listed_.vocabulary.end_token();
  ++split_.end_tokens;
  if (rules_.sentences == SentenceMarks::around && last_ == mark) ++split_.certain_marks;
  put(mark);
}

void ListedEncoder::put_word(std::string_view word) {
  std::int32_t id = listed_.vocabulary.id_of(word);
  if (id < 0) {
    const bool may_be_unknown = rules_.unseen == UnseenWords::unk;
    const auto place = [this] { return text("line ", line_, " of '", path_, "'"); };
    id = may_be_unknown ? listed_.vocabulary.unknown_token() : -1;
    if (id < 0 && listed_.missing != nullptr) {
      listed_.missing->add(word, place());
      return;
    }
    if (id < 0)
      throw FileError(text("prepare: every word must be in ", listed_.name, ", got '", word, "' in ", place(), "\n  ",
                           may_be_unknown ? "the list has no <UNK> or <unk> to put in its place"
                                          : "--oov unk puts the list's <UNK> in the place of such words"));
    ++split_.unknown;
  }
  put(id);
}

void ListedEncoder::put(std::int32_t id) {
  ids_.push_back(id);
  last_ = id;
}

void ListedEncoder::write() {
  writer_.append(ids_);
  ids_.clear();
}

}  // namespace engram::data
