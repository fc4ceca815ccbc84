#pragma once
/// The file of a table whose rows are read where they lie (docs/reference/tables.md, "Tables in mapped files";
/// [product-key 7.5]): a header of 4096 bytes, then the rows, each from a multiple of the row stride on. All numbers
/// are little-endian.
///
///   offset  bytes
///        0      8  "ENGRTABL"
///        8      4  version, 1
///       12      4  CRC-32 (core/files/crc32.hpp) of all rows as they are in memory, without what pads them in the file
///       16      8  rows
///       24      8  width, numbers of a row
///       32      8  row stride, bytes
///       40      8  dtype as text: "f32", "f64" or "bf16", then zeros
///       48   4044  zeros
///     4092      4  CRC-32 of the 4092 bytes before

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "core/files/crc32.hpp"
#include "core/files/durable_file.hpp"
#include "core/shape.hpp"

namespace engram {

inline constexpr std::size_t kTableHeaderBytes = 4096;

/// Throws FileError "table file: '<path>' <message>".
[[noreturn]] void refuse_table_file(const std::filesystem::path& path, const std::string& message);

/// What a header says.
struct TableHeader {
  std::int64_t rows = 0, width = 0;
  DType dtype = DType::f32;    ///< f32, f64 or bf16
  std::int64_t stride = 0;     ///< bytes from one row to the next
  std::uint32_t contents = 0;  ///< CRC-32 of the rows: which table this is

  /// The header of a table [rows, width]. Throws ShapeError unless both are at least 1, and DTypeError for integers.
  static TableHeader of(const Shape& shape, DType dtype);

  Shape shape() const { return {rows, width}; }
  std::int64_t row_bytes() const { return width * static_cast<std::int64_t>(size_of(dtype)); }
  /// Of the whole file.
  std::uint64_t file_bytes() const {
    return kTableHeaderBytes + static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(stride);
  }
  /// The 4096 bytes at the start of the file.
  std::string bytes() const;
  /// A header from the first bytes of a file of `file_bytes` bytes. Throws FileError, naming `path`, the rule and
  /// what there is, for a file that is shorter than a header, another magic, version, checksum, dtype, shape or stride
  /// than are possible, and a file of another size than the header says.
  static TableHeader parse(std::string_view bytes, std::uint64_t file_bytes, const std::filesystem::path& path);
};

/// Rows begin at multiples of 64 bytes, those of 2 KiB or more at multiples of 4096: a page holds no part of another
/// row, or whole ones.
constexpr std::int64_t table_stride(std::int64_t row_bytes) {
  const std::int64_t unit = row_bytes >= 2048 ? 4096 : 64;
  return (row_bytes + unit - 1) / unit * unit;
}

/// The file of the table of this name in a folder: `<name>.table`.
std::filesystem::path table_path(const std::filesystem::path& folder, std::string_view name);

/// Writes a table piece by piece. The path holds what it held before until commit() (core/files/durable_file.hpp).
class TableWriter {
 public:
  /// Throws FileError as DurableFile does, and as TableHeader::of().
  TableWriter(const std::filesystem::path& path, const Shape& shape, DType dtype);
  /// The next bytes of the table, row-major without padding; pieces need not end where rows do. Throws FileError when
  /// the disk is full, and Error beyond the last row.
  void append(std::span<const std::byte> bytes);
  /// Writes the header and gives the file its name. Throws Error when rows are missing. Returns what was written.
  TableHeader commit();

 private:
  TableHeader header_;
  DurableFile file_;
  Crc32 contents_;
  std::int64_t in_row_ = 0, rows_ = 0;  // bytes of a row that is not complete; rows that are
};

}  // namespace engram
