/// Event files: checksums against published ones, records and messages against a reader of their format.

#include "apps/report/event_file.hpp"

#include <limits>
#include <span>
#include <string>

#include "core/files/crc32.hpp"
#include "tests/apps/report/event_file_reader.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::event_file_test {
namespace {

std::uint32_t crc32c(std::string_view bytes) {
  Crc32c crc;
  crc.add(std::as_bytes(std::span(bytes)));
  return crc.value();
}

TEST_CASE("event files: CRC-32C has the values of RFC 3720, B.4") {
  std::string up, down;
  for (int i = 0; i < 32; ++i) up += static_cast<char>(i);
  for (int i = 31; i >= 0; --i) down += static_cast<char>(i);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(crc32c(up) == 0x46dd794eu);
  CHECK(crc32c(down) == 0x113fdb5cu);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c("") == 0);
  // Of every length, in groups of sixteen bytes and beside them.
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    CHECK(crc32c(bytes) == plain_crc32c(bytes));
    bytes += static_cast<char>(i * 37 + 11);
  }
}

TEST_CASE("event files: a record is a length, a message and the masked checksums of both") {
  CHECK(masked_crc32c("123456789") == plain_mask(0xe3069283u));
  // Every event file of TensorFlow begins with these twelve bytes: its first message has 24.
  const std::string start = event_record(event_file_start(1234.5));
  CHECK(start.substr(0, 12) == std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  CHECK(start.size() == 24 + 16);
  CHECK(records_of(event_record("") + event_record("ab")) == std::vector<std::string>{"", "ab"});
}

TEST_CASE("event files: what an event says is read back") {
  SummaryEvent event{.wall_time = 1774492501.25, .step = std::int64_t{1} << 40, .scalars = {}, .texts = {}};
  event.scalars = {
      {"loss/train", 0.1}, {"rate", 1e-30}, {std::string(300, 't'), -std::numeric_limits<double>::infinity()}};
  event.texts = {{"sample", "caf\xc3\xa9\n    x"}};
  const std::vector<ReadEvent> read =
      events_of(event_record(event_file_start(1)) + event_record(event_message(event)) +
                event_record(event_message({.wall_time = 2, .step = 0, .scalars = {{"a", 3}}, .texts = {}})));
  REQUIRE(read.size() == 5);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read[i].tag == event.scalars[i].first);
    CHECK(read[i].value == static_cast<float>(event.scalars[i].second));
    CHECK(read[i].wall_time == event.wall_time);
    CHECK(read[i].step == event.step);
  }
  CHECK(read[3].shown == event.texts[0].second);
  CHECK(read[4].step == 0);
}

}  // namespace
}  // namespace engram::harness::event_file_test
