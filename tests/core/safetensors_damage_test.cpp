// Files that are cut, flipped, foreign or made to mislead: each gives one FileError, or is read within its bounds.
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::safetensors_damage_test {

namespace {

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(rest);
}
std::string file_of(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

std::string open_error(const std::filesystem::path& path) {
  return message_of<FileError>([&] { SafetensorsFile file(path); });
}

// The message that reading these bytes gives; empty when they are accepted, which includes that the tensors fill the
// data exactly.
std::string verdict(const TemporaryFolder& folder, std::string_view bytes) {
  const auto path = put_file(folder / "probe", bytes);
  std::string message;
  std::size_t total = 0;
  try {
    const SafetensorsFile file(path);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    for (const auto& [name, tensor] : file.tensors()) {
      total += file.bytes(tensor).size();
      REQUIRE(file.bytes(tensor).size() == static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype));
    }
    REQUIRE(total == bytes.size() - 8 - length);
  } catch (const FileError& error) {
    message = error.what();
    REQUIRE_THAT(message, ContainsSubstring(path.string()));
  }
  return message;
}

std::string small_file(const TemporaryFolder& folder) {
  const std::array<float, 3> weights{1.0f, 2.0f, 3.0f};
  const std::int32_t count = 7;
  write_safetensors(folder / "small",
                    std::vector{host_tensor("weights", DType::f32, {3}, weights.data()),
                                host_tensor("count", DType::i32, {}, &count)},
                    {{"step", "5"}});
  return get_file(folder / "small");
}

}  // namespace

TEST_CASE("safetensors: files of PyTorch are told what reads them, others are not") {
  const TemporaryFolder folder;
  const std::string rest(40, 'x');
  const std::string_view hint = "it looks like a file of PyTorch, which engram import reads";
  CHECK_THAT(verdict(folder, "PK\3\4" + rest), ContainsSubstring(std::string(hint)));
  CHECK_THAT(verdict(folder, "\x80\2\x8a\x0a" + rest), ContainsSubstring(std::string(hint)));
  CHECK_THAT(verdict(folder, "\x80\6\x8a\x0a" + rest), !ContainsSubstring(std::string(hint)));
  CHECK_THAT(verdict(folder, "To be, or" + rest), ContainsSubstring("was cut short or is not of this format"));
}

TEST_CASE("safetensors damage: a file cut at any byte, or longer, is refused", "[safetensors]") {
  TemporaryFolder folder;
  const std::string file = small_file(folder);
  REQUIRE(verdict(folder, file).empty());
  for (std::size_t length = 0; length < file.size(); ++length) {
    CAPTURE(length);
    REQUIRE_FALSE(verdict(folder, std::string_view(file).substr(0, length)).empty());
  }
  CHECK_THAT(verdict(folder, file.substr(0, 5)),
             ContainsSubstring("got a file of 5 bytes") && ContainsSubstring("cut short"));
  CHECK_THAT(verdict(folder, file.substr(0, file.size() - 1)), ContainsSubstring("cut short"));
  CHECK_THAT(verdict(folder, file + "x"), ContainsSubstring("must end with the last tensor"));
}

TEST_CASE("safetensors damage: every flipped bit is found, or did not matter", "[safetensors]") {
  TemporaryFolder folder;
  const std::string file = small_file(folder);
  const std::size_t key = file.find("engram.checksum");
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit / 8, bit % 8);
    if (!verdict(folder, flipped).empty()) continue;
    // Under another name the entry is no checksum, and nothing else has changed.
    const bool in_key = bit / 8 >= key && bit / 8 < key + std::strlen("engram.checksum");
    REQUIRE(in_key);
    ++accepted;
  }
  CHECK(accepted > 0);
}

TEST_CASE("safetensors damage: data and metadata of a file with a wrong checksum are not used", "[safetensors]") {
  TemporaryFolder folder;
  std::string file = small_file(folder);
  SECTION("data") { file.back() = static_cast<char>(file.back() ^ 1); }
  SECTION("metadata") { file.replace(file.find("\"5\""), 3, "\"6\""); }
  SECTION("the checksum itself") {
    char& digit = file[file.find("crc32:") + 6];
    digit = digit == '0' ? '1' : '0';
  }
  CHECK_THAT(verdict(folder, file), ContainsSubstring("must have the checksum crc32:") && ContainsSubstring("damaged"));
}

TEST_CASE("safetensors damage: a checksum stands plainly or is refused", "[safetensors]") {
  TemporaryFolder folder;
  const auto with_metadata = [](const std::string& entries) {
    return file_of("{\"__metadata__\":{" + entries + "}}", 0);
  };
  CHECK(verdict(folder, with_metadata(R"("other":"text")")).empty());
  for (const char* entries : {R"("engram.checksum":"")", R"("engram.checksum":"md5:00000000")",
                              R"("engram.checksum":"crc32:0000000")", R"("engram\u002echecksum":"crc32:00000000")"}) {
    CAPTURE(entries);
    CHECK_THAT(verdict(folder, with_metadata(entries)),
               ContainsSubstring("engram.checksum") && ContainsSubstring("eight digits"));
  }
  // The entry is found between blanks, and not taken for the end of the key before it, whose value is the same. The
  // letters were chosen, with zlib, to give this checksum.
  CHECK(verdict(folder, with_metadata("\"f\":\"aacacccaaaaaacaaaacacccccaaacaccaaaaaaaa\","
                                      R"("x\"engram.checksum":"crc32:01234567", "engram.checksum" : "crc32:01234567")"))
            .empty());
}

TEST_CASE("safetensors damage: each rule of the header has its message", "[safetensors]") {
  TemporaryFolder folder;
  struct Case {
    const char* header;
    std::size_t data_bytes;
    const char* expected;
  };
  const std::vector<Case> cases{
      {"", 0, "must begin with '{'"},
      {"[]", 0, "must begin with '{'"},
      {" {}", 0, "must begin with '{'"},
      {"{", 0, "must be JSON"},
      {"{}}", 0, "must be JSON"},
      {"{\"a\":1e999}", 0, "must be JSON"},
      {"{\"\xff\":{}}", 0, "must be JSON in UTF-8"},
      {"{\"a\":[[[[[[", 0, "nested deeper"},
      {R"({"a":3})", 0, "tensor \"a\": must be an object, got a JSON number"},
      {R"({"":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4, "must have a name"},
      {R"({"__metadata__":[]})", 0, "__metadata__ must be an object"},
      {R"({"__metadata__":{"a":1}})", 0, "must hold strings, got for \"a\""},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "got no dtype"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "got no shape"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "got no data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0}})", 4, "only, got \"x\""},
      {R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype must be a string"},
      {R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4, "tensor \"a\": dtype must be F32"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape must be an array"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "shape must hold integers"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "shape must hold integers from 0"},
      {R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4, "shape must hold integers"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4, "got 9223372036854775808"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1],"data_offsets":[0,4]}})", 4, "at most 5 axes, got 6"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "less than 2^63 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4, "less than 2^63 bytes"},
      {R"({"a":{"dtype":"BF16","shape":[2305843009213693952],"data_offsets":[0,4]}})", 4, "less than 2^63 bytes"},
      {R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0, "less than 2^63 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4, "must be [begin, end], got 1"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "must be [begin, end], got 3"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "data_offsets must hold integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "must lie in the 4 bytes of data, got [4, 0]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "got [0, 8]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "f32 [2] must take 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "no holes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "must end with the last tensor"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "must not overlap, got \"a\" up to byte 8 and \"b\" from byte 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "given once, got \"a\" twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4, "got \"shape\" twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "got \"k\" twice"},
  };
  for (const Case& probe : cases) {
    CAPTURE(probe.header);
    CHECK_THAT(verdict(folder, file_of(probe.header, probe.data_bytes)), ContainsSubstring(probe.expected));
  }
  CHECK_THAT(verdict(folder, file_of(std::string("{}\0garbage", 10), 0)), ContainsSubstring("zero byte at 2"));
  const std::string message = verdict(folder, file_of("{\"\\u001b[31m" + std::string(5000, 'x') + "\":1}", 0));
  CHECK(message.size() < 500);
  CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("safetensors damage: header lengths beyond the file or beyond reason", "[safetensors]") {
  TemporaryFolder folder;
  CHECK_THAT(verdict(folder, with_length(3, "{}")),
             ContainsSubstring("header length of 3") && ContainsSubstring("file of 10 bytes"));
  for (const std::uint64_t length : {~std::uint64_t{0}, ~std::uint64_t{7}, std::uint64_t{1} << 63})
    CHECK_THAT(verdict(folder, with_length(length, "{}")),
               ContainsSubstring("header length of " + std::to_string(length)));
  // A file with a hole: large on paper only.
  const auto path = put_file(folder / "large", with_length(100'000'001, "{}"));
  std::filesystem::resize_file(path, 200'000'000);
  CHECK_THAT(open_error(path), ContainsSubstring("at most 100000000 bytes, got 100000001"));
}

// Names are looked up, not compared one by one: otherwise this takes minutes.
TEST_CASE("safetensors damage: a header of a hundred thousand tensors", "[safetensors]") {
  TemporaryFolder folder;
  std::string header = "{";
  constexpr int kTensors = 100'000;
  for (int i = 0; i < kTensors; ++i)
    header += "\"" + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},";
  const auto file = [&](const std::string& last) { return file_of(header + last + "}", 0); };
  const std::string one = ":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
  CHECK(verdict(folder, file("\"last\"" + one)).empty());
  CHECK_THAT(verdict(folder, file("\"17\"" + one)), ContainsSubstring("got \"17\" twice"));
}

TEST_CASE("safetensors damage: foreign files are accepted by the format and refused otherwise", "[safetensors]") {
  TemporaryFolder folder;
  // Other order than the offsets, blanks, padding, no metadata, unaligned data.
  const std::string foreign = file_of(
      "{\"b\": {\"shape\": [1], \"data_offsets\": [2, 6], \"dtype\": \"F32\"},\n \"e\": {\"dtype\": \"F64\", "
      "\"shape\": "
      "[0], \"data_offsets\": [2, 2]}, \"a\": {\"dtype\": \"BF16\", \"shape\": [1], \"data_offsets\": [0, 2]}}   ",
      6);
  CHECK(verdict(folder, foreign).empty());
  CHECK_FALSE(verdict(folder, std::string("PK\x03\x04\x14\0\0\0\x08\0 a zip file", 20)).empty());
  CHECK_FALSE(verdict(folder, "In the beginning God created the heaven and the earth.").empty());
  CHECK_FALSE(verdict(folder, "").empty());
}

TEST_CASE("safetensors damage: what is no readable file is named", "[safetensors]") {
  TemporaryFolder folder;
  CHECK_THAT(open_error(folder / "missing"),
             ContainsSubstring("No such file") && ContainsSubstring((folder / "missing").string()));
  CHECK_THAT(open_error(folder.path()), ContainsSubstring("got a folder"));
  put_file(folder / "file", "x");
  CHECK_THAT(open_error(folder / "file/x"), ContainsSubstring("Not a directory"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(open_error(folder / "pipe"), ContainsSubstring("must be a regular file"));
}

TEST_CASE("safetensors damage: thousands of mangled headers never escape their bounds", "[safetensors]") {
  TemporaryFolder folder;
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const std::vector<std::string> pieces{
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "\"",
      "\\",
      "null",
      "true",
      "0",
      "4",
      "8",
      "16",
      "-1",
      "1e9",
      "18446744073709551615",
      "9223372036854775807",
      "\"dtype\":",
      "\"F32\"",
      "\"F64\"",
      "\"shape\":",
      "[2]",
      "[4]",
      "[]",
      "[0]",
      "\"data_offsets\":",
      "[0,8]",
      "[8,16]",
      "[8,24]",
      "\"__metadata__\":",
      "{\"a\":\"b\"}",
      "\xff",
      std::string(1, '\0'),
      " ",
      "\"layers.0/weights\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}",
      "\"layers.1/weights\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}"};
  const std::string valid = "{" + pieces[pieces.size() - 2] + "," + pieces.back() + "}";
  REQUIRE(verdict(folder, file_of(valid, 16)).empty());
  std::size_t accepted = 0;
  constexpr std::size_t kRounds = 4000;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::string header;
    if (round % 4 == 0) {
      for (std::size_t i = below(30); i > 0; --i) header += pieces[below(pieces.size())];
      header = "{" + header + "}";
    } else {
      header = valid;
      for (std::size_t i = 1 + below(3); i > 0; --i) {
        const std::size_t at = below(header.size());
        if (const std::size_t kind = below(4); kind == 0)
          header[at] = static_cast<char>(random());
        else if (kind == 1)
          header.erase(at, 1 + below(3));
        else if (kind == 2)
          header.insert(at, pieces[below(pieces.size())]);
        else
          header[at] = "0123456789"[below(10)];
      }
    }
    const std::size_t data_bytes = below(8) == 0 ? below(40) : 16;
    CAPTURE(round, header);
    if (verdict(folder, file_of(header, data_bytes)).empty()) ++accepted;
  }
  // Both outcomes occur, so that both were looked at.
  CHECK(accepted > kRounds / 100);
  CHECK(accepted < kRounds / 2);
}

}  // namespace engram::harness::safetensors_damage_test
