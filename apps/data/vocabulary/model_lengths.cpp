#include "apps/data/vocabulary/model_lengths.hpp"

#include <cstdint>
#include <optional>

namespace engram::data {
namespace {

/// Takes a number of seven bits a byte, the lowest first, off the front.
std::optional<std::uint64_t> take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

/// Messages within a model: the fields of its specifications and pieces are numbers and texts, its tests are messages.
enum class Message : unsigned char { model, tests, flat };

bool all_fit(std::string_view bytes, Message message) {
  constexpr std::uint64_t kNumber = 0, kEightBytes = 1, kLength = 2, kFourBytes = 5;  // kinds of fields
  while (!bytes.empty()) {
    const std::optional<std::uint64_t> key = take_number(bytes);
    if (!key) return true;
    const std::uint64_t field = *key >> 3, kind = *key & 7;
    std::uint64_t size = kind == kEightBytes ? 8 : kind == kFourBytes ? 4 : 0;
    if (kind == kNumber || kind == kLength) {
      const std::optional<std::uint64_t> number = take_number(bytes);
      if (!number) return true;
      if (kind == kLength) size = *number;
    }
    if (size > bytes.size()) return false;
    const std::string_view inside = bytes.substr(0, size);
    if (kind == kLength && message == Message::model && field <= 5 &&
        !all_fit(inside, field == 4 ? Message::tests : Message::flat))
      return false;
    if (kind == kLength && message == Message::tests && field == 1 && !all_fit(inside, Message::flat)) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace

bool lengths_fit(std::string_view model) { return all_fit(model, Message::model); }

}  // namespace engram::data
