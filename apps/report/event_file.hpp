#pragma once
/// Event files, which TensorBoard reads: records, each with its length and CRC-32C, of the messages Event and Summary
/// (protocol buffers), of which this writes the fields of scalars and texts.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/durable_file.hpp"

namespace engram {

/// What was seen at one time.
struct SummaryEvent {
  double wall_time = 0;  ///< seconds since 1970 began, UTC
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> scalars;     ///< by tag; f32 in the file
  std::vector<std::pair<std::string, std::string>> texts;  ///< by tag: Markdown, in UTF-8
};

/// CRC-32C as records have it: turned by 15 bits, and a constant added.
std::uint32_t masked_crc32c(std::string_view bytes);

/// A record: the length in 8 bytes and its masked CRC, the bytes and their masked CRC, all numbers lowest byte first.
std::string event_record(std::string_view bytes);

/// The message that a file begins with. It says which version of the format follows.
std::string event_file_start(double wall_time);
/// The message of an event.
std::string event_message(const SummaryEvent& event);

}  // namespace engram
