#pragma once
/// Numbers, lowest byte first, and pieces of a file, one after the other, never beyond its end.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apps/run/weights/pytorch/refusal.hpp"

namespace engram {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

class ByteReader {
 public:
  /// `where`: what is read, for messages.
  ByteReader(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  std::size_t at() const { return at_; }  ///< bytes that have been read
  std::size_t left() const { return bytes_.size() - at_; }

  /// Throws FileError when fewer bytes are left.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left())
      refuse_pytorch(where_, "must have ", count, count == 1 ? " byte" : " bytes", " from byte ", at_, " on, got ",
                     left(), "\n  the file was cut short or damaged");
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  /// As take(). `Number`: an integer or double without padding.
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text(std::uint64_t count) {
    const std::span<const std::byte> taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// Up to the next line end, which is taken too. Throws FileError for more than `most` bytes without one.
  std::string_view line(std::size_t most) {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, left() < most ? left() : most);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos)
      refuse_pytorch(where_, "must have a line end within ", most, " bytes from byte ", at_, " on, got none");
    at_ += end + 1;
    return rest.substr(0, end);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace engram
