#include "apps/data/text/text_lines.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "apps/data/files/bytes_to_ask.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

}  // namespace

TextLines::TextLines(std::filesystem::path path) : path_(std::move(path)), descriptor_(open_to_read(path_)) {}

TextLines::~TextLines() { ::close(descriptor_); }

std::string TextLines::place() const { return text("line ", number_, " of '", path_.string(), "'"); }

bool TextLines::read() {
  buffer_.erase(0, std::exchange(at_, 0));
  const std::size_t used = buffer_.size(), wanted = bytes_to_ask(descriptor_, bytes_, kPiece);
  buffer_.resize(used + wanted);
  ssize_t count = 0;
  do count = ::read(descriptor_, buffer_.data() + used, wanted);
  while (count < 0 && errno == EINTR);
  if (count < 0) refuse_unreadable(path_, errno);
  buffer_.resize(used + static_cast<std::size_t>(count));
  hash_.add(std::string_view(buffer_).substr(used));
  bytes_ += count;
  return count > 0;
}

bool TextLines::next(std::string& line) {
  std::size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos) {
    const std::size_t known = buffer_.size() - at_;  // without a line end
    if (known > kLongest || !read()) break;
    end = buffer_.find('\n', known);
  }
  const bool ended = end != std::string::npos;
  line.assign(buffer_, at_, (ended ? end : buffer_.size()) - at_);
  if (!ended && line.empty()) return false;
  ++number_;
  at_ = ended ? end + 1 : buffer_.size();
  if (line.size() > kLongest)
    throw FileError(text("prepare: a line must have at most ", kLongest, " bytes, got more in ", place(),
                         "\n  break it into paragraphs or sentences"));
  if (ended && line.ends_with('\r')) line.pop_back();
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  repair(line);
  return true;
}

void TextLines::repair(std::string& line) {
  std::size_t wrong = find_invalid_utf8(line);
  if (wrong == line.size()) return;
  std::string repaired;
  std::string_view rest = line;
  for (; wrong < rest.size(); wrong = find_invalid_utf8(rest)) {
    repaired += rest.substr(0, wrong);
    repaired += kReplacement;
    rest.remove_prefix(wrong + 1);
    ++replaced_;
  }
  repaired += rest;
  line = std::move(repaired);
}

}  // namespace engram::data
