#include "apps/report/event_file.hpp"

#include <bit>
#include <cstring>
#include <span>

#include "core/files/crc32.hpp"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory");

/// A number as it is in memory.
template <class T>
void append_bytes(std::string& out, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

/// A message of protocol buffers in the making: a field is its number and the way it is written, then the value.
class Message {
 public:
  void add_integer(std::uint64_t field, std::uint64_t value) {
    add_varint(field << 3 | 0);
    add_varint(value);
  }
  void add_double(std::uint64_t field, double value) {
    add_varint(field << 3 | 1);
    append_bytes(bytes_, value);
  }
  void add_float(std::uint64_t field, float value) {
    add_varint(field << 3 | 5);
    append_bytes(bytes_, value);
  }
  /// A string, or the bytes of another message.
  void add_bytes(std::uint64_t field, std::string_view value) {
    add_varint(field << 3 | 2);
    add_varint(value.size());
    bytes_ += value;
  }
  void add_message(std::uint64_t field, const Message& value) { add_bytes(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  /// Seven bits a byte, the lowest first; the eighth says that more follow.
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Numbers of fields, as TensorFlow's event.proto, summary.proto and tensor.proto have them.
constexpr std::uint64_t kEventTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5;
constexpr std::uint64_t kSummaryValue = 1;
constexpr std::uint64_t kValueTag = 1, kValueScalar = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr std::uint64_t kMetadataPlugin = 1, kPluginName = 1;
constexpr std::uint64_t kTensorType = 1, kTensorShape = 2, kTensorString = 8, kTypeString = 7;

Message scalar_value(const std::string& tag, double value) {
  Message made;
  made.add_bytes(kValueTag, tag);
  made.add_float(kValueScalar, static_cast<float>(value));
  return made;
}

/// A tensor of no dimensions that holds a string, for the part of TensorBoard that shows texts.
Message text_value(const std::string& tag, const std::string& shown) {
  Message plugin, metadata, tensor, made;
  plugin.add_bytes(kPluginName, "text");
  metadata.add_message(kMetadataPlugin, plugin);
  tensor.add_integer(kTensorType, kTypeString);
  tensor.add_message(kTensorShape, {});
  tensor.add_bytes(kTensorString, shown);
  made.add_bytes(kValueTag, tag);
  made.add_message(kValueTensor, tensor);
  made.add_message(kValueMetadata, metadata);
  return made;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  Crc32c crc;
  crc.add(std::as_bytes(std::span(bytes)));
  return std::rotr(crc.value(), 15) + 0xa282ead8u;
}

std::string event_record(std::string_view bytes) {
  std::string record;
  append_bytes(record, static_cast<std::uint64_t>(bytes.size()));
  append_bytes(record, masked_crc32c(record));
  record += bytes;
  append_bytes(record, masked_crc32c(bytes));
  return record;
}

std::string event_file_start(double wall_time) {
  Message event;
  event.add_double(kEventTime, wall_time);
  event.add_bytes(kEventVersion, "brain.Event:2");
  return event.bytes();
}

std::string event_message(const SummaryEvent& event) {
  Message summary, made;
  for (const auto& [tag, value] : event.scalars) summary.add_message(kSummaryValue, scalar_value(tag, value));
  for (const auto& [tag, shown] : event.texts) summary.add_message(kSummaryValue, text_value(tag, shown));
  made.add_double(kEventTime, event.wall_time);
  made.add_integer(kEventStep, static_cast<std::uint64_t>(event.step));
  made.add_message(kEventSummary, summary);
  return made.bytes();
}

}  // namespace engram
