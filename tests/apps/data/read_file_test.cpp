/// What files that are read may be: regular ones, and for texts pipes that end.

#include "apps/data/files/read_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "apps/data/files/bytes_to_ask.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/line_pieces.hpp"
#include "apps/data/text/text_lines.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::read_file_test {

using namespace engram::data;

namespace {

/// A pipe that holds these bytes, and has no writer any more.
struct FilledPipe {
  explicit FilledPipe(std::string_view bytes) {
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
  }
  ~FilledPipe() { ::close(ends[0]); }
  std::string path() const { return "/dev/fd/" + std::to_string(ends[0]); }
  int ends[2] = {-1, -1};
};

}  // namespace

TEST_CASE("read file: small files are asked for their bytes and one more, pipes and what grows for all", "[data]") {
  const TemporaryFolder folder;
  constexpr std::size_t kMost = 100;
  const auto path = put_file(folder / "text", "0123456789");
  const int file = open_to_read(path);
  CHECK(bytes_to_ask(file, 0, kMost) == 11);
  CHECK(bytes_to_ask(file, 8, kMost) == 3);
  CHECK(bytes_to_ask(file, 10, kMost) == 1);
  CHECK(bytes_to_ask(file, 0, 4) == 4);
  CHECK(bytes_to_ask(file, 11, kMost) == kMost);  // it was longer
  REQUIRE(::truncate(path.c_str(), 50) == 0);
  CHECK(bytes_to_ask(file, 10, kMost) == 41);
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  CHECK(bytes_to_ask(file, 0, kMost) == kMost);
  ::close(file);
  const FilledPipe pipe("some");
  CHECK(bytes_to_ask(pipe.ends[0], 0, kMost) == kMost);
}

TEST_CASE("read file: devices never end, so they are refused", "[data]") {
  const std::string rule = "'/dev/zero' must be a regular file or a pipe, got a device";
  CHECK_THAT(message_of<FileError>([] { read_bytes("/dev/zero"); }), ContainsSubstring(rule));
  CHECK_THAT(message_of<FileError>([] { TextLines("/dev/zero"); }), ContainsSubstring(rule));
  CHECK_THAT(message_of<FileError>([] { LinePieces("/dev/zero"); }), ContainsSubstring(rule));
  const TemporaryFolder folder;
  for (const TokenKind kind : {TokenKind::character, TokenKind::word}) {
    PrepareOptions options;
    options.kind = kind;
    options.text = "/dev/zero";
    options.out = folder / "data";
    CHECK_THAT(message_of<FileError>([&] { prepare(options); }), ContainsSubstring(rule));
    CHECK_FALSE(std::filesystem::exists(options.out));
  }
}

TEST_CASE("read file: a pipe is read to its end, which must come", "[data]") {
  CHECK(read_bytes(FilledPipe("a text").path()) == "a text");
  CHECK(read_bytes(FilledPipe("a text").path(), Pipes::read, 6) == "a text");
  CHECK_THAT(
      message_of<FileError>([] { read_bytes(FilledPipe("a text").path(), Pipes::read, 5); }),
      ContainsSubstring("must end after at most 5 bytes") && ContainsSubstring("write what it gives into a file"));
}

TEST_CASE("read file: the files of a data folder are regular ones", "[data]") {
  const TemporaryFolder folder;
  // Nobody writes into it.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of<FileError>([&] { read_bytes(folder / "pipe", Pipes::refused); }),
             ContainsSubstring("must be a regular file, got a pipe"));
  CHECK_THAT(message_of<FileError>([&] { read_json(folder / "pipe", "engram data", 1); }),
             ContainsSubstring("must be a regular file, got a pipe"));
}

}  // namespace engram::harness::read_file_test
