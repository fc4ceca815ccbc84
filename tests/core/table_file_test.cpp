#include "core/files/table_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/files/mapped_table.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/table_files.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::table_file_test {
namespace {

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
/// With the checksum that belongs to it.
std::string sealed(std::string header) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span(header).first(4092)));
  put(header, 4092, crc.value());
  return header;
}

TEST_CASE("table file: rows begin at whole lines, long ones at whole pages") {
  const std::pair<std::int64_t, std::int64_t> strides[] = {{1, 64},      {64, 64},     {65, 128},    {2047, 2048},
                                                           {2048, 4096}, {4096, 4096}, {4097, 8192}, {6400, 8192}};
  for (const auto& [bytes, stride] : strides) CHECK(table_stride(bytes) == stride);
}

TEST_CASE("table file: the layout is the documented one") {
  const TemporaryFolder folder;
  const std::vector<float> values = counted(6);
  put_table(folder / "t.table", {3, 2}, DType::f32, values.data());
  const std::string file = get_file(folder / "t.table");
  REQUIRE(file.size() == 4096 + 3 * 64);
  std::string header(4096, '\0');
  header.replace(0, 8, "ENGRTABL");
  put(header, 8, std::uint32_t{1});
  Crc32 contents;
  contents.add(std::as_bytes(std::span(values)));
  put(header, 12, contents.value());
  put(header, 16, std::uint64_t{3});
  put(header, 24, std::uint64_t{2});
  put(header, 32, std::uint64_t{64});
  header.replace(40, 3, "f32");
  CHECK(file.substr(0, 4096) == sealed(header));
  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(std::memcmp(file.data() + 4096 + row * 64, values.data() + row * 2, 8) == 0);
    CHECK(file.substr(4096 + row * 64 + 8, 56) == std::string(56, '\0'));
  }
}

TEST_CASE("table file: what is written in pieces cut anywhere is read back, row by row") {
  const TemporaryFolder folder;
  const auto width = GENERATE(std::int64_t{1}, std::int64_t{16}, std::int64_t{17}, std::int64_t{512}, std::int64_t{600},
                              std::int64_t{1024});
  constexpr std::int64_t kRows = 37;
  const std::vector<float> values = counted(kRows * width);
  const auto bytes = std::as_bytes(std::span(values));
  TableWriter writer(folder / "t.table", {kRows, width}, DType::f32);
  std::size_t piece = 1;
  for (std::size_t at = 0; at < bytes.size(); piece = piece * 3 % 8191) {
    const std::size_t count = std::min(piece, bytes.size() - at);
    writer.append(bytes.subspan(at, count));
    at += count;
  }
  const TableHeader written = writer.commit();
  const MappedTable table(folder / "t.table", {kRows, width}, DType::f32);
  CHECK(table.header().contents == written.contents);
  CHECK(table.header().file_bytes() == std::filesystem::file_size(folder / "t.table"));
  const std::int64_t stride = table.padded_rows().shape()[1];
  CHECK(stride * 4 == table_stride(width * 4));
  for (std::int64_t row = 0; row < kRows; ++row)
    REQUIRE(std::memcmp(table.padded_rows().data<float>() + row * stride, values.data() + row * width,
                        static_cast<std::size_t>(width) * 4) == 0);
}

TEST_CASE("table file: the path keeps what it held until all rows are there") {
  const TemporaryFolder folder;
  const auto path = put_file(folder / "t.table", "before");
  const std::vector<float> values = counted(8);
  const auto bytes = std::as_bytes(std::span(values));
  const std::int64_t width = GENERATE(std::int64_t{2}, std::int64_t{16});  // with padding and without
  {
    TableWriter writer(path, {2, width}, DType::f32);
    writer.append(bytes.first(12));
    CHECK_THROWS_WITH(writer.commit(), ContainsSubstring(path.string()) &&
                                           ContainsSubstring(width == 2 ? "2 rows, got 1" : "2 rows, got 0"));
  }
  {
    TableWriter writer(path, {2, 2}, DType::f32);
    CHECK_THROWS_WITH(writer.append(bytes.first(20)), ContainsSubstring("has 2 rows, got more"));
  }
  {
    TableWriter writer(path, {1, 16}, DType::f32);
    const std::vector<float> many = counted(17);
    CHECK_THROWS_WITH(writer.append(std::as_bytes(std::span(many))), ContainsSubstring("has 1 rows, got more"));
  }
  CHECK(get_file(path) == "before");
  CHECK_THROWS_AS(TableWriter(path, {2, 2}, DType::i32), DTypeError);
  CHECK_THROWS_AS(TableWriter(path, {0, 2}, DType::f32), ShapeError);
  CHECK_THROWS_AS(TableWriter(path, {4}, DType::f32), ShapeError);
  CHECK_THROWS_AS(TableWriter(folder / "none" / "t.table", {2, 2}, DType::f32), FileError);
}

struct WrittenTable : TemporaryFolder {
  std::filesystem::path path = *this / "t.table";
  std::string good;

  WrittenTable() {
    put_table(path, {5, 3}, DType::f32, counted(15).data());
    good = get_file(path);
  }
  std::string refusal(const std::string& contents, const Shape& shape = {5, 3}, DType dtype = DType::f32) {
    put_file(path, contents);
    return message_of<FileError>([&] { MappedTable(path, shape, dtype); });
  }
};

TEST_CASE_METHOD(WrittenTable, "table file: a header with any byte changed is refused") {
  CHECK(refusal(good).empty());
  for (std::size_t at = 0; at < kTableHeaderBytes; ++at) {
    std::string header = good.substr(0, kTableHeaderBytes);
    header[at] = static_cast<char>(header[at] ^ (at % 2 == 0 ? 1 : 0x80));
    CAPTURE(at);
    const std::string message = message_of<FileError>([&] { TableHeader::parse(header, good.size(), path); });
    CHECK_THAT(message, ContainsSubstring(path.string()) && ContainsSubstring(at < 8    ? "must begin with"
                                                                              : at < 12 ? "version"
                                                                                        : "checksum"));
    CHECK_THAT(message, ContainsSubstring(", got "));
  }
}

TEST_CASE_METHOD(WrittenTable, "table file: every field that a checksum does not protect is checked by itself") {
  const auto with = [this](std::size_t at, auto value) {
    std::string changed = good;
    put(changed, at, value);
    return sealed(changed.substr(0, kTableHeaderBytes)) + changed.substr(kTableHeaderBytes);
  };
  CHECK_THAT(refusal(with(0, 'X')), ContainsSubstring("must begin with 'ENGRTABL', got 'XNGRTABL'"));
  CHECK_THAT(refusal(with(8, std::uint32_t{2})), ContainsSubstring("version 1, got 2"));
  CHECK_THAT(refusal(with(16, std::int64_t{6})),
             ContainsSubstring("must have 4480 bytes, for 6 rows every 64, got") && ContainsSubstring("4416"));
  CHECK_THAT(refusal(with(16, std::int64_t{0})), ContainsSubstring("got 0 rows"));
  CHECK_THAT(refusal(with(16, std::int64_t{-5})), ContainsSubstring("got -5 rows"));
  CHECK_THAT(refusal(with(16, std::int64_t{1} << 58)), ContainsSubstring("2^62"));
  CHECK_THAT(refusal(with(24, std::int64_t{4})), ContainsSubstring("f32 [5, 3], got f32 [5, 4]"));
  CHECK_THAT(refusal(with(24, std::int64_t{17})),
             ContainsSubstring("every 128 bytes, for rows of 68, got one every 64"));
  CHECK_THAT(refusal(with(24, std::int64_t{-1})), ContainsSubstring("of -1 f32"));
  CHECK_THAT(refusal(with(24, std::int64_t{1} << 61)), ContainsSubstring("2^62"));
  CHECK_THAT(refusal(with(32, std::int64_t{128})),
             ContainsSubstring("every 64 bytes, for rows of 12, got one every 128"));
  CHECK_THAT(refusal(with(40, 'i')), ContainsSubstring("f32, f64 or bf16, got 'i32'"));
  CHECK_THAT(refusal(with(40, std::uint64_t{0x363166'62})), ContainsSubstring("got bf16 [5, 3]"));
}

TEST_CASE_METHOD(WrittenTable, "table file: files of another size and other things than files are refused") {
  CHECK_THAT(refusal(good.substr(0, good.size() - 1)),
             ContainsSubstring("must have 4416 bytes") && ContainsSubstring("got a file of 4415"));
  CHECK_THAT(refusal(good + "x"), ContainsSubstring("got a file of 4417"));
  CHECK_THAT(refusal(good.substr(0, 4096)), ContainsSubstring("got a file of 4096"));
  CHECK_THAT(refusal(good.substr(0, 4095)), ContainsSubstring("header of 4096 bytes, got a file of 4095"));
  CHECK_THAT(refusal(""), ContainsSubstring("got a file of 0"));
  const auto opened = [](const std::filesystem::path& other) {
    return message_of<FileError>([&] { MappedTable(other, {5, 3}, DType::f32); });
  };
  CHECK_THAT(opened(*this / "none"), ContainsSubstring("none' must be a readable file, got '"));
  CHECK_THAT(opened(this->TemporaryFolder::path()), ContainsSubstring("must be a regular file"));
}

TEST_CASE_METHOD(WrittenTable, "table file: a table of another shape or dtype than the model's is refused") {
  CHECK_THAT(refusal(good, {5, 4}),
             ContainsSubstring(path.string()) && ContainsSubstring("f32 [5, 4], got f32 [5, 3]"));
  CHECK_THAT(refusal(good, {6, 3}), ContainsSubstring("f32 [6, 3], got f32 [5, 3]"));
  CHECK_THAT(refusal(good, {5, 3}, DType::f64), ContainsSubstring("f64 [5, 3], got f32 [5, 3]"));
  CHECK_THAT(refusal(good, {5, 3}, DType::bf16), ContainsSubstring("bf16 [5, 3], got f32 [5, 3]"));
}

// [product-key 10], test 19: offsets beyond 32 bits.
TEST_CASE("mapped table: the last row of a file of more than 4 GiB") {
  const TemporaryFolder folder;
  TableHeader header = TableHeader::of({80'000'003, 16}, DType::f32);
  REQUIRE(header.file_bytes() > (std::uint64_t{1} << 32));
  const std::int64_t last = header.rows - 1;
  const std::vector<float> row = counted(16);
  SparseTable(folder / "t.table", header).put_row(last, row.data());
  const MappedTable table(folder / "t.table", header.shape(), header.dtype);
  CHECK(std::memcmp(table.padded_rows().data<float>() + last * 16, row.data(), 64) == 0);
  // Where 32 bits of the offset would be.
  const std::int64_t wrapped = last - (std::int64_t{1} << 32) / 64;
  for (int i = 0; i < 16; ++i) CHECK(table.padded_rows().data<float>()[wrapped * 16 + i] == 0);
}

class FixedMemory final : public Allocator {
 public:
  explicit FixedMemory(void* data) : data_(data) {}
  void* allocate(std::size_t) override { return data_; }
  void free(void*, std::size_t) noexcept override {}

 private:
  void* data_;
};

TEST_CASE("mapped table: read-ahead fetches the rows of a call, and no others") {
  const TemporaryFolder folder;
  constexpr std::int64_t kRows = 64, kWidth = 1024;  // a page each
  put_table(folder / "t.table", {kRows, kWidth}, DType::f32, counted(kRows * kWidth).data());
  const MappedTable table(folder / "t.table", {kRows, kWidth}, DType::f32);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (page != 4096) return;  // else rows share pages
  const auto cached = [&](std::int64_t row) {
    unsigned char there = 0;
    if (::mincore(table.padded_rows().data<float>() + row * kWidth, page, &there) != 0) return true;
    return (there & 1) != 0;
  };
  const int file = ::open((folder / "t.table").c_str(), O_RDONLY | O_CLOEXEC);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  std::vector<std::int64_t> wanted{40, 7, 8, 40, 63, 0};
  FixedMemory memory(wanted.data());
  const Tensor ids({2, 3}, DType::i64, Device{}, memory);
  const auto all_cached = [&] { return std::ranges::all_of(wanted, cached); };
  const std::array<std::int64_t, 7> others{1, 6, 9, 20, 39, 41, 62};
  // A file system in memory keeps them.
  const bool dropped = std::ranges::none_of(wanted, cached) && std::ranges::none_of(others, cached);
  const auto wait_for = [](const auto& there) {
    for (int wait = 0; wait < 1000 && !there(); ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return there();
  };
  // QEMU, which runs this for aarch64, ignores such advice: asked for a row of its own it does nothing either.
  ::madvise(table.padded_rows().data<float>() + 50 * kWidth, page, MADV_WILLNEED);
  const bool takes_advice = wait_for([&] { return cached(50); });
  table.read_ahead(ids);
  if (takes_advice) CHECK(wait_for(all_cached));
  if (dropped)
    for (const std::int64_t other : others) CHECK_FALSE(cached(other));
  wanted[2] = kRows;
  CHECK_THROWS_WITH(table.read_ahead(ids), ContainsSubstring("must be in [0, 64), got 64"));
  wanted[2] = -1;
  CHECK_THROWS_WITH(table.read_ahead(ids), ContainsSubstring("got -1"));
}

}  // namespace
}  // namespace engram::harness::table_file_test
