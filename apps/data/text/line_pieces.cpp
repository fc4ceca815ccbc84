#include "apps/data/text/line_pieces.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "apps/data/files/bytes_to_ask.hpp"
#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"

namespace engram::data {

LinePieces::LinePieces(std::filesystem::path path, std::size_t piece_bytes)
    : path_(std::move(path)), piece_bytes_(piece_bytes), descriptor_(open_to_read(path_)) {}

LinePieces::LinePieces(std::filesystem::path path, std::int64_t first, std::int64_t count)
    : LinePieces(std::move(path)) {
  most_ = count;
  if (::lseek(descriptor_, first, SEEK_SET) < 0) refuse_unreadable(path_, errno);
}

LinePieces::~LinePieces() { ::close(descriptor_); }

bool LinePieces::next(std::string& piece) {
  first_byte_ = bytes_ - std::ssize(rest_);
  piece = std::exchange(rest_, {});
  while (!at_end_) {
    const std::size_t used = piece.size();
    const std::size_t wanted = static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(bytes_to_ask(descriptor_, bytes_, piece_bytes_)), most_ - bytes_));
    piece.resize(used + wanted);
    const ssize_t count = ::read(descriptor_, piece.data() + used, wanted);
    if (count < 0 && errno != EINTR) refuse_unreadable(path_, errno);
    piece.resize(used + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0) continue;
    at_end_ = count == 0;
    hash_.add(std::string_view(piece).substr(used));
    bytes_ += count;
    // Only what is new can hold the end of the line that was not complete.
    const std::size_t last = std::string_view(piece).substr(used).rfind('\n');
    if (last == std::string_view::npos || at_end_) continue;
    const std::size_t end = used + last + 1;
    rest_ = piece.substr(end);
    piece.resize(end);
    return true;
  }
  return !piece.empty();
}

}  // namespace engram::data
