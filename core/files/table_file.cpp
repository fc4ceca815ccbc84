#include "core/files/table_file.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.hpp"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little, "the file holds the bytes of the host");

constexpr std::string_view kMagic = "ENGRTABL";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kVersionAt = 8, kContentsAt = 12, kRowsAt = 16, kWidthAt = 24, kStrideAt = 32, kDTypeAt = 40,
                      kDTypeBytes = 8, kChecksumAt = kTableHeaderBytes - 4;
/// Beyond it byte offsets would not fit 64 bits.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint32_t checksum_of(std::string_view bytes) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span(bytes)));
  return crc.value();
}

/// What is no letter becomes a question mark.
std::string shown(std::string_view bytes) {
  std::string letters(bytes.substr(0, std::min(bytes.find('\0'), bytes.size())));
  for (char& c : letters)
    if (c < ' ' || c > '~') c = '?';
  return letters;
}

std::string hexadecimal(std::uint32_t value) {
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[value >> shift & 15];
  return digits;
}

DType parse_table_dtype(std::string_view field, const std::filesystem::path& path) {
  const std::string_view name = field.substr(0, std::min(field.find('\0'), field.size()));
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    if (name == name_of(dtype)) return dtype;
  refuse_table_file(path, text("must have numbers of dtype f32, f64 or bf16, got '", shown(name), "'"));
}

}  // namespace

void refuse_table_file(const std::filesystem::path& path, const std::string& message) {
  throw FileError(text("table file: '", path.string(), "' ", message));
}

TableHeader TableHeader::of(const Shape& shape, DType dtype) {
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1)
    throw ShapeError(text("table file: a table must be [rows, width], both at least 1, got ", shape));
  if (is_integer(dtype)) throw DTypeError(text("table file: numbers must be f32, f64 or bf16, got ", dtype));
  TableHeader header{.rows = shape[0], .width = shape[1], .dtype = dtype};
  header.stride = table_stride(header.row_bytes());
  return header;
}

std::string TableHeader::bytes() const {
  std::string header(kTableHeaderBytes, '\0');
  header.replace(0, kMagic.size(), kMagic);
  put(header, kVersionAt, kVersion);
  put(header, kContentsAt, contents);
  put(header, kRowsAt, rows);
  put(header, kWidthAt, width);
  put(header, kStrideAt, stride);
  const std::string_view name = name_of(dtype);
  header.replace(kDTypeAt, name.size(), name);
  put(header, kChecksumAt, checksum_of(std::string_view(header).substr(0, kChecksumAt)));
  return header;
}

TableHeader TableHeader::parse(std::string_view bytes, std::uint64_t file_bytes, const std::filesystem::path& path) {
  if (bytes.size() < kTableHeaderBytes)
    refuse_table_file(path, text("must begin with a header of ", kTableHeaderBytes, " bytes, got a file of ",
                                 file_bytes, "\n  it was cut short or is no table"));
  if (const std::string_view magic = bytes.substr(0, kMagic.size()); magic != kMagic)
    refuse_table_file(path,
                      text("must begin with '", kMagic, "', got '", shown(magic), "'\n  it is no table of Engram"));
  if (const auto version = get<std::uint32_t>(bytes, kVersionAt); version != kVersion)
    refuse_table_file(path, text("must be of version ", kVersion, ", got ", version,
                                 "\n  it was damaged, or a newer Engram wrote it"));
  const auto stated = get<std::uint32_t>(bytes, kChecksumAt);
  if (const std::uint32_t found = checksum_of(bytes.substr(0, kChecksumAt)); found != stated)
    refuse_table_file(path, text("must have a header of checksum ", hexadecimal(stated), ", as it states, got ",
                                 hexadecimal(found), "\n  the file was damaged after it was written; write it again"));
  TableHeader header{.rows = get<std::int64_t>(bytes, kRowsAt),
                     .width = get<std::int64_t>(bytes, kWidthAt),
                     .dtype = parse_table_dtype(bytes.substr(kDTypeAt, kDTypeBytes), path),
                     .stride = get<std::int64_t>(bytes, kStrideAt),
                     .contents = get<std::uint32_t>(bytes, kContentsAt)};
  if (header.rows < 1 || header.width < 1 || header.width > kMostBytes / 4096 ||
      header.rows > kMostBytes / table_stride(header.row_bytes()))
    refuse_table_file(path, text("must have from 1 to 2^62 bytes of rows, got ", header.rows, " rows of ", header.width,
                                 " ", header.dtype));
  if (const std::int64_t stride = table_stride(header.row_bytes()); header.stride != stride)
    refuse_table_file(path, text("must have a row every ", stride, " bytes, for rows of ", header.row_bytes(),
                                 ", got one every ", header.stride));
  const std::size_t zeros = kDTypeAt + name_of(header.dtype).size();
  if (const std::size_t odd = bytes.substr(0, kChecksumAt).find_first_not_of('\0', zeros); odd != bytes.npos)
    refuse_table_file(path, text("must have zeros from byte ", zeros, " to the checksum, got another one at byte ", odd,
                                 "\n  it was damaged, or another program wrote it"));
  if (header.file_bytes() != file_bytes)
    refuse_table_file(
        path, text("must have ", header.file_bytes(), " bytes, for ", header.rows, " rows every ", header.stride,
                   ", got a file of ", file_bytes, "\n  it was cut short, or something was added to it"));
  return header;
}

std::filesystem::path table_path(const std::filesystem::path& folder, std::string_view name) {
  return folder / (std::string(name) + ".table");
}

TableWriter::TableWriter(const std::filesystem::path& path, const Shape& shape, DType dtype)
    : header_(TableHeader::of(shape, dtype)), file_(path) {
  file_.append(std::string(kTableHeaderBytes, '\0'));
}

void TableWriter::append(std::span<const std::byte> bytes) {
  contents_.add(bytes);
  const std::string padding(static_cast<std::size_t>(header_.stride - header_.row_bytes()), '\0');
  while (!bytes.empty()) {
    if (rows_ == header_.rows)
      throw Error(text("table file: '", file_.path().string(), "' has ", header_.rows, " rows, got more"));
    // What needs no padding goes in one piece.
    const auto missing = static_cast<std::size_t>(header_.row_bytes() - in_row_);
    const std::size_t count = std::min(padding.empty() ? bytes.size() : missing, bytes.size());
    file_.append({reinterpret_cast<const char*>(bytes.data()), count});
    in_row_ += static_cast<std::int64_t>(count);
    rows_ += in_row_ / header_.row_bytes();
    if (rows_ > header_.rows || (rows_ == header_.rows && in_row_ % header_.row_bytes() != 0))
      throw Error(text("table file: '", file_.path().string(), "' has ", header_.rows, " rows, got more"));
    if (in_row_ % header_.row_bytes() == 0) file_.append(padding);
    in_row_ %= header_.row_bytes();
    bytes = bytes.subspan(count);
  }
}

TableHeader TableWriter::commit() {
  if (rows_ != header_.rows)
    throw Error(text("table file: '", file_.path().string(), "' must get ", header_.rows, " rows, got ", rows_));
  header_.contents = contents_.value();
  file_.overwrite(0, header_.bytes());
  file_.commit();
  return header_;
}

}  // namespace engram
