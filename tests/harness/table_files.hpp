#pragma once
/// Table files for tests.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/files/table_file.hpp"

namespace engram::harness {

/// Writes a tensor's bytes, all at once.
inline std::filesystem::path put_table(const std::filesystem::path& path, const Shape& shape, DType dtype,
                                       const void* values) {
  TableWriter writer(path, shape, dtype);
  writer.append({static_cast<const std::byte*>(values), static_cast<std::size_t>(shape.count()) * size_of(dtype)});
  writer.commit();
  return path;
}

/// A table of zeros that takes no room on the disk but for the header and the rows that are put into it.
class SparseTable {
 public:
  SparseTable(const std::filesystem::path& path, const TableHeader& header)
      : header_(header), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(header.file_bytes())) != 0)
      throw std::runtime_error("no sparse file");
    put_at(0, header.bytes());
  }
  ~SparseTable() { ::close(file_); }
  SparseTable(const SparseTable&) = delete;
  SparseTable& operator=(const SparseTable&) = delete;

  void put_row(std::int64_t row, const void* values) {
    put_at(static_cast<std::int64_t>(kTableHeaderBytes) + row * header_.stride,
           {static_cast<const char*>(values), static_cast<std::size_t>(header_.row_bytes())});
  }

 private:
  void put_at(std::int64_t offset, std::string_view bytes) {
    if (::pwrite(file_, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no room for a sparse file");
  }

  TableHeader header_;
  int file_;
};

}  // namespace engram::harness
