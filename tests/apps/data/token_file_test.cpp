#include <sys/stat.h>

#include <algorithm>
#include <numeric>

#include "apps/data/files/token_file.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::token_file_test {

using namespace engram::data;

namespace {

using Ids = std::vector<std::int32_t>;

std::filesystem::path write_ids(const std::filesystem::path& path, const Ids& ids, std::int64_t vocabulary_size) {
  TokenFileWriter writer(path, vocabulary_size, 0x1234567890abcdefu);
  writer.append(ids);
  writer.commit();
  return path;
}

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// A file written from the description of the format in the header, with hashes that fit.
std::string file_bytes(std::uint32_t width, std::uint64_t vocabulary_size, std::uint64_t count, const std::string& ids,
                       std::uint32_t version = 1) {
  const std::string header = "ENGRAMTK" + number(version, 4) + number(width, 4) + number(vocabulary_size, 8) +
                             number(count, 8) + number(7, 8) + number(hash_of(ids), 8);
  return header + number(hash_of(header), 8) + ids;
}

std::string open_error(const std::filesystem::path& path) {
  return message_of<FileError>([&] { TokenFile file(path); });
}

}  // namespace

TEST_CASE("token file: ids of every width come back", "[data]") {
  TemporaryFolder folder;
  struct Case {
    std::int64_t vocabulary_size;
    int width;
  };
  for (const Case& c : {Case{1, 1}, Case{256, 1}, Case{257, 2}, Case{65536, 2}, Case{65537, 4}, Case{2147483647, 4}}) {
    CAPTURE(c.vocabulary_size);
    const auto last = static_cast<std::int32_t>(c.vocabulary_size - 1);
    const Ids ids{0, last, last / 2, last / 3, 0, last};
    const TokenFile file(write_ids(folder / "t", ids, c.vocabulary_size));
    CHECK(std::filesystem::file_size(folder / "t") == 56 + 6 * static_cast<std::uintmax_t>(c.width));
    CHECK(file.tokens().width() == c.width);
    CHECK(file.vocabulary_size() == c.vocabulary_size);
    CHECK(file.vocabulary_hash() == 0x1234567890abcdefu);
    REQUIRE(file.tokens().size() == 6);
    Ids read(6);
    file.tokens().copy(0, 6, read.data());
    CHECK(read == ids);
    CHECK(file.tokens()[1] == last);
  }
}

TEST_CASE("token file: written in pieces it is the same file", "[data]") {
  TemporaryFolder folder;
  Ids ids(300'001);
  std::iota(ids.begin(), ids.end(), 0);
  write_ids(folder / "whole", ids, 1 << 20);
  {
    TokenFileWriter writer(folder / "pieces", 1 << 20, 0x1234567890abcdefu);
    for (std::size_t first = 0; first < ids.size(); first += 777)
      writer.append(std::span(ids).subspan(first, std::min<std::size_t>(777, ids.size() - first)));
    writer.flush();
    CHECK(writer.count() == 300'001);
    CHECK_FALSE(std::filesystem::exists(folder / "pieces"));
    writer.commit();
  }
  CHECK(get_file(folder / "pieces") == get_file(folder / "whole"));
  CHECK_FALSE(std::filesystem::exists(folder / "pieces.partial"));
}

TEST_CASE("token file: the documented format is what is written and read", "[data]") {
  TemporaryFolder folder;
  const std::string ids = number(300, 2) + number(5, 2);
  const TokenFile file(put_file(folder / "t", file_bytes(2, 1000, 2, ids)));
  CHECK(file.tokens()[0] == 300);
  CHECK(file.tokens()[1] == 5);
  CHECK(file.vocabulary_hash() == 7);
  CHECK(file.content_hash() == hash_of(ids));
  {
    TokenFileWriter writer(folder / "w", 1000, 7);
    writer.append(Ids{300, 5});
    writer.commit();
  }
  CHECK(get_file(folder / "w") == get_file(folder / "t"));
}

TEST_CASE("token file: an empty one is legal, a moved one keeps its mapping", "[data]") {
  TemporaryFolder folder;
  TokenFile first(write_ids(folder / "t", {}, 10));
  CHECK(first.tokens().size() == 0);
  TokenFile second(write_ids(folder / "u", {4, 2}, 10));
  const TokenFile moved(std::move(second));
  CHECK(moved.tokens()[0] == 4);
  // Replacing the file under an open mapping changes nothing for its reader.
  write_ids(folder / "u", {1}, 10);
  CHECK(moved.tokens()[1] == 2);
}

TEST_CASE("token file: cut at any byte it is refused", "[data]") {
  TemporaryFolder folder;
  const std::string whole = get_file(write_ids(folder / "t", {1, 2, 3, 400, 5}, 1000));
  REQUIRE(whole.size() == 66);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const std::string message = open_error(put_file(folder / "cut", whole.substr(0, length)));
    CHECK_THAT(message, ContainsSubstring((folder / "cut").string()) && ContainsSubstring("prepare the data again"));
    if (length == 0)
      CHECK_THAT(message, ContainsSubstring("got an empty file"));
    else if (length < 56)
      CHECK_THAT(message, ContainsSubstring("header of 56 bytes, got a file of " + std::to_string(length)));
    else
      CHECK_THAT(message, ContainsSubstring("hold the 5 ids of 2 bytes that its header states, got " +
                                            std::to_string(length - 56) + " bytes of ids"));
  }
  CHECK_THAT(open_error(put_file(folder / "long", whole + "x")), ContainsSubstring("got 11 bytes of ids"));
}

TEST_CASE("token file: any flipped bit is noticed", "[data]") {
  TemporaryFolder folder;
  const std::string whole = get_file(write_ids(folder / "t", {1, 2, 3, 400, 5}, 1000));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    CAPTURE(bit);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    const std::string message = open_error(put_file(folder / "d", damaged));
    const char* expected = bit < 64       ? "begin with 'ENGRAMTK', got a foreign file"
                           : bit < 96     ? "be of version 1, got version "
                           : bit < 8 * 56 ? "got a header whose bytes have changed"
                                          : "got ids that have changed";
    CHECK_THAT(message, ContainsSubstring(expected));
  }
}

TEST_CASE("token file: headers that promise too much, with hashes that fit", "[data]") {
  TemporaryFolder folder;
  const auto error_of = [&](const std::string& bytes) { return open_error(put_file(folder / "t", bytes)); };
  const std::string ids = "\x01\x02";
  CHECK(error_of(file_bytes(1, 3, 2, ids)).empty());
  CHECK_THAT(error_of(file_bytes(1, 3, 3, ids)), ContainsSubstring("hold the 3 ids of 1 bytes"));
  CHECK_THAT(error_of(file_bytes(1, 3, 1, ids)), ContainsSubstring("hold the 1 ids of 1 bytes"));
  // 2^63 ids of two bytes are 2^64 bytes: zero in 64 bits.
  CHECK_THAT(error_of(file_bytes(2, 1000, std::uint64_t{1} << 63, "")),
             ContainsSubstring("hold the 9223372036854775808 ids"));
  CHECK_THAT(error_of(file_bytes(1, 3, ~std::uint64_t{0}, ids)),
             ContainsSubstring("hold the 18446744073709551615 ids"));
  CHECK_THAT(error_of(file_bytes(2, 3, 1, ids)), ContainsSubstring("ids of 1 bytes for a vocabulary of 3, got 2"));
  CHECK_THAT(error_of(file_bytes(0, 3, 2, ids)), ContainsSubstring("got 0"));
  CHECK_THAT(error_of(file_bytes(1, 0, 2, ids)), ContainsSubstring("vocabulary size from 1 to 2147483647, got 0"));
  CHECK_THAT(error_of(file_bytes(4, std::uint64_t{1} << 31, 0, "")), ContainsSubstring("got 2147483648"));
  CHECK_THAT(error_of(file_bytes(1, 3, 2, ids, 2)), ContainsSubstring("be of version 1, got version 2"));
  CHECK_THAT(error_of(file_bytes(1, 2, 2, ids)), ContainsSubstring("hold ids from 0 to 1, got 2 at position 1"));
  CHECK_THAT(error_of(file_bytes(4, 65537, 1, number(0xffffffffu, 4))), ContainsSubstring("got -1 at position 0"));
  CHECK_THAT(error_of("an ordinary text file, longer than any header would be"),
             ContainsSubstring("got a foreign file"));
}

TEST_CASE("token file: errors of the system and of the writer", "[data]") {
  TemporaryFolder folder;
  CHECK_THAT(open_error(folder / "none"), ContainsSubstring("none") && ContainsSubstring("No such file or directory"));
  CHECK_THAT(open_error(folder.path()), ContainsSubstring("Is a directory"));
  // Nobody writes into the pipe.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::filesystem::path& path : {folder / "pipe", std::filesystem::path("/dev/zero")})
    CHECK_THAT(open_error(path), ContainsSubstring("must be a regular file, got a device, pipe or socket"));
  TokenFileWriter writer(folder / "t", 10, 0);
  writer.append(Ids{9, 0});
  CHECK_THAT(message_of<UsageError>([&] {
               writer.append(Ids{3, 10});
             }),
             ContainsSubstring("from 0 to 9, got 10 at position 3"));
  CHECK_THAT(message_of<UsageError>([&] { writer.append(Ids{-1}); }), ContainsSubstring("got -1 at position 2"));
  CHECK_THROWS_AS(TokenFileWriter(folder / "u", 0, 0), UsageError);
  CHECK_FALSE(std::filesystem::exists(folder / "u.partial"));
}

}  // namespace engram::harness::token_file_test
