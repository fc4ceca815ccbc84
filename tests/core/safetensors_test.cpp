#include "core/files/safetensors.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/files/crc32.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::safetensors_test {

namespace {

std::uint32_t crc_of(std::string_view bytes) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span(bytes)));
  return crc.value();
}

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.bytes(file.tensors().at(name));
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

}  // namespace

TEST_CASE("crc32: known answers, and any cutting into pieces gives the same", "[safetensors]") {
  CHECK(crc_of("") == 0);
  CHECK(crc_of("123456789") == 0xcbf43926u);
  CHECK(crc_of("The quick brown fox jumps over the lazy dog") == 0x414fa339u);
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += static_cast<char>(i * 37 + i / 7);
  // Bit by bit, as the polynomial is defined.
  std::uint32_t plain = 0xffffffffu;
  for (const char byte : bytes) {
    plain ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) plain = (plain >> 1) ^ ((plain & 1u) * 0xedb88320u);
  }
  CHECK(crc_of(bytes) == ~plain);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Crc32 crc;
    crc.add(std::as_bytes(std::span(bytes).first(cut)));
    crc.add(std::as_bytes(std::span(bytes).subspan(cut)));
    REQUIRE(crc.value() == ~plain);
  }
}

TEST_CASE("safetensors: a file is the documented one, byte by byte", "[safetensors]") {
  TemporaryFolder folder;
  const std::array<std::int32_t, 2> b{1, -2};
  const double a = 1.5;
  const std::vector<TensorSource> tensors{host_tensor("b", DType::i32, {2}, b.data()),
                                          host_tensor("a", DType::f64, {}, &a)};
  write_safetensors(folder / "x", tensors, {{"key", "a \"value\""}});
  // The checksum was computed by another program (zlib) over this file with eight zeros in its place.
  const std::string header = R"({"__metadata__":{"engram.checksum":"crc32:f27c3c25","key":"a \"value\""},)"
                             R"("a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"I32","shape":[2],"data_offsets":[8,16]}}     )";
  const std::string length("\xb8\0\0\0\0\0\0\0", 8);
  const std::string data("\0\0\0\0\0\0\xf8\x3f\x01\0\0\0\xfe\xff\xff\xff", 16);
  CHECK(get_file(folder / "x") == length + header + data);
}

TEST_CASE("safetensors: all element types, shapes and metadata come back", "[safetensors]") {
  TemporaryFolder folder;
  const std::vector<float> f32{0.0f, -0.0f, 1e-45f, 3.4e38f, -1.0f, std::numeric_limits<float>::infinity()};
  const std::vector<double> f64{1e300, -5e-324, 0.1};
  const std::vector<std::uint16_t> bf16_bits{0x3f80, 0xc020, 0x7fc0};
  const std::vector<std::int32_t> i32{-2147483647 - 1, 2147483647};
  const std::vector<TensorSource> tensors{
      host_tensor("layers.0/weights", DType::f32, {1, 2, 1, 3, 1}, f32.data()),
      host_tensor("optimizer/é \"q\" \\ \n", DType::f64, {3}, f64.data()),
      host_tensor("half", DType::bf16, {3, 1}, bf16_bits.data()),
      host_tensor("counts", DType::i32, {2}, i32.data()),
      host_tensor("empty", DType::f32, {0, 7}, nullptr),
      host_tensor("scalar", DType::f32, {}, f32.data() + 4),
  };
  const Metadata metadata{{"step", "12"}, {"", ""}, {"text", "tab\t \"engram.checksum\":\"crc32:00000000\" ü"}};
  write_safetensors(folder / "x", tensors, metadata);

  const SafetensorsFile file(folder / "x");
  CHECK(file.metadata() == metadata);
  REQUIRE(file.tensors().size() == tensors.size());
  for (const TensorSource& tensor : tensors) {
    CAPTURE(tensor.name);
    CHECK(file.tensors().at(tensor.name).dtype == tensor.dtype);
    CHECK(file.tensors().at(tensor.name).shape == tensor.shape);
    CHECK(reinterpret_cast<std::uintptr_t>(file.bytes(file.tensors().at(tensor.name)).data()) % size_of(tensor.dtype) ==
          0);
  }
  CHECK(std::memcmp(values<float>(file, "layers.0/weights").data(), f32.data(), 24) == 0);
  CHECK(values<double>(file, "optimizer/é \"q\" \\ \n") == f64);
  CHECK(values<std::uint16_t>(file, "half") == bf16_bits);
  CHECK(values<std::int32_t>(file, "counts") == i32);
  CHECK(values<float>(file, "empty").empty());
  CHECK(values<float>(file, "scalar") == std::vector<float>{-1.0f});
}

TEST_CASE("safetensors: no tensors at all is a valid file", "[safetensors]") {
  TemporaryFolder folder;
  write_safetensors(folder / "x", {}, {});
  CHECK(SafetensorsFile(folder / "x").tensors().empty());
}

TEST_CASE("safetensors: a tensor larger than a chunk is asked for in order and without gaps", "[safetensors]") {
  TemporaryFolder folder;
  const std::int64_t count = 700'001;
  std::vector<float> expected(count);
  for (std::int64_t i = 0; i < count; ++i) expected[i] = static_cast<float>(i);
  std::size_t reached = 0;
  const auto read = [&](std::size_t offset, std::span<std::byte> to) {
    REQUIRE(offset == reached);
    REQUIRE(to.size() <= TensorSource::kChunkBytes);
    std::memcpy(to.data(), reinterpret_cast<const std::byte*>(expected.data()) + offset, to.size());
    reached += to.size();
  };
  write_safetensors(folder / "x", std::vector<TensorSource>{{"w", DType::f32, {count}, read}}, {});
  CHECK(reached == expected.size() * sizeof(float));
  const bool equal = values<float>(SafetensorsFile(folder / "x"), "w") == expected;
  CHECK(equal);  // not the vectors, which would be printed
}

TEST_CASE("safetensors: a reader keeps the old contents while the file is replaced", "[safetensors]") {
  TemporaryFolder folder;
  const float first = 1.0f;
  const float second = 2.0f;
  write_safetensors(folder / "x", std::vector{host_tensor("w", DType::f32, {1}, &first)}, {});
  const SafetensorsFile old_file(folder / "x");
  const SafetensorsFile copy = old_file;
  write_safetensors(folder / "x", std::vector{host_tensor("w", DType::f32, {1}, &second)}, {});
  CHECK(values<float>(copy, "w") == std::vector{1.0f});
  CHECK(values<float>(SafetensorsFile(folder / "x"), "w") == std::vector{2.0f});
}

TEST_CASE("safetensors: what cannot be written is refused and the old file stays", "[safetensors]") {
  TemporaryFolder folder;
  put_file(folder / "x", "old");
  const float value = 1.0f;
  const auto refused = [&](const std::vector<std::string>& names, const Metadata& metadata) {
    std::vector<TensorSource> tensors;
    for (const std::string& name : names) tensors.push_back(host_tensor(name, DType::f32, {1}, &value));
    return message_of<Error>([&] { write_safetensors(folder / "x", tensors, metadata); });
  };
  CHECK_THAT(refused({"a", "b", "a"}, {}), ContainsSubstring("unique") && ContainsSubstring("\"a\""));
  CHECK_THAT(refused({""}, {}), ContainsSubstring("not empty"));
  CHECK_THAT(refused({"__metadata__"}, {}), ContainsSubstring("__metadata__"));
  CHECK_THAT(refused({"\xff"}, {}), ContainsSubstring("UTF-8"));
  CHECK_THAT(refused({}, {{"key", "\xff"}}), ContainsSubstring("UTF-8"));
  CHECK_THAT(refused({}, {{"engram.checksum", "x"}}), ContainsSubstring("engram.checksum"));
  CHECK(get_file(folder / "x") == "old");

  const auto failing = [](std::size_t, std::span<std::byte>) { throw DeviceError("lost"); };
  const std::vector<TensorSource> tensors{{"w", DType::f32, {1}, failing}};
  CHECK_THROWS_AS(write_safetensors(folder / "x", tensors, {}), DeviceError);
  CHECK(get_file(folder / "x") == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "x.partial"));
  CHECK_THROWS_AS(write_safetensors(folder / "no/x", {}, {}), FileError);
}

}  // namespace engram::harness::safetensors_test
