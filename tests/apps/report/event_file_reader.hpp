#pragma once
/// Event files read by their format alone: https://github.com/tensorflow/tensorflow has it in record_writer.cc,
/// event.proto, summary.proto and tensor.proto.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::harness {

/// CRC-32C a bit at a time, as RFC 3720 defines it.
inline std::uint32_t plain_crc32c(std::string_view bytes) {
  std::uint32_t state = 0xffffffffu;
  for (const char byte : bytes) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1u) != 0 ? 0x82f63b78u : 0u);
  }
  return ~state;
}

inline std::uint32_t plain_mask(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T number{};
  REQUIRE(at + sizeof number <= bytes.size());
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// The messages of a file, whose lengths and checksums must be right.
inline std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const auto length = number_at<std::uint64_t>(file, 0);
    REQUIRE(length <= file.size());
    REQUIRE(file.size() >= 16 + length);
    CHECK(number_at<std::uint32_t>(file, 8) == plain_mask(plain_crc32c(file.substr(0, 8))));
    CHECK(number_at<std::uint32_t>(file, 12 + length) == plain_mask(plain_crc32c(file.substr(12, length))));
    records.emplace_back(file.substr(12, length));
    file.remove_prefix(16 + length);
  }
  return records;
}

/// Of a message of protocol buffers: what each field has, in order; of numbers their bytes.
class Fields {
 public:
  explicit Fields(std::string_view message) {
    while (!message.empty()) {
      const std::uint64_t key = varint(message), field = key >> 3;
      std::uint64_t length = 0;
      switch (key & 7) {
        case 0: {
          const std::uint64_t value = varint(message);
          fields_[field].emplace_back(reinterpret_cast<const char*>(&value), sizeof value);
          continue;
        }
        case 1:
          length = 8;
          break;
        case 2:
          length = varint(message);
          break;
        case 5:
          length = 4;
          break;
        default:
          FAIL("a way of writing that is not used");
      }
      REQUIRE(length <= message.size());
      fields_[field].emplace_back(message.substr(0, length));
      message.remove_prefix(length);
    }
  }
  const std::vector<std::string>& all(std::uint64_t field) const {
    static const std::vector<std::string> none;
    const auto found = fields_.find(field);
    return found == fields_.end() ? none : found->second;
  }
  bool has(std::uint64_t field) const { return fields_.contains(field); }
  const std::string& one(std::uint64_t field) const {
    REQUIRE(all(field).size() == 1);
    return all(field)[0];
  }
  template <class T>
  T number(std::uint64_t field) const {
    return number_at<T>(one(field), 0);
  }

 private:
  static std::uint64_t varint(std::string_view& message) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(!message.empty());
      const auto byte = static_cast<unsigned char>(message[0]);
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::map<std::uint64_t, std::vector<std::string>> fields_;
};

/// A point of a curve, or a text.
struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string tag;
  float value = 0;
  std::string shown;  ///< of a text
};

/// What a file says, but for its first message, which must say the version.
inline std::vector<ReadEvent> events_of(std::string_view file) {
  const std::vector<std::string> records = records_of(file);
  REQUIRE_FALSE(records.empty());
  CHECK(Fields(records[0]).one(3) == "brain.Event:2");
  std::vector<ReadEvent> events;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Fields event(records[i]), summary(event.one(5));
    for (const std::string& value : summary.all(1)) {
      const Fields fields(value);
      ReadEvent read{.wall_time = event.number<double>(1),
                     .step = event.number<std::int64_t>(2),
                     .tag = fields.one(1),
                     .shown = {}};
      if (fields.has(2)) {
        read.value = fields.number<float>(2);
      } else {
        CHECK(Fields(Fields(fields.one(9)).one(1)).one(1) == "text");
        const Fields tensor(fields.one(8));
        CHECK(tensor.number<std::uint64_t>(1) == 7);
        read.shown = tensor.one(8);
      }
      events.push_back(std::move(read));
    }
  }
  return events;
}

}  // namespace engram::harness
