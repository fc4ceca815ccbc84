#pragma once
/// A table in a file (core/files/table_file.hpp) that is read where it lies, so that a table may be larger than the
/// memory. The file is mapped read-only and shared: what the system's page cache keeps of it are the rows that are read
/// often, once for all processes that read the file. Nothing is read when it is opened but the header.

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "core/allocator.hpp"
#include "core/files/table_file.hpp"
#include "core/tensor.hpp"

namespace engram {

class MappedTable {
 public:
  /// Throws FileError, before any row is mapped, for a file that cannot be read or whose header TableHeader::parse
  /// refuses, and for one that holds another shape or dtype than the table's; the message has the file and both.
  /// Reading is undefined when another program shortens the file meanwhile; one that replaces it is harmless.
  MappedTable(const std::filesystem::path& path, const Shape& shape, DType dtype);
  MappedTable(const MappedTable&) = delete;
  MappedTable& operator=(const MappedTable&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const TableHeader& header() const { return header_; }
  /// [rows, row stride in numbers] on the CPU: a row's first `width` numbers are the table's, the others pad it. Must
  /// neither be written to nor outlive this.
  const Tensor& padded_rows() const { return rows_; }
  /// Asks the system to fetch these rows (i64 on the CPU, any shape), and returns without waiting for them: they come
  /// side by side while something else is computed, not one after the other when each is first touched. Neighbours are
  /// asked for together; ids may be there several times. Throws Error for an id outside the table.
  void read_ahead(const Tensor& ids) const;

 private:
  /// The memory is the file's.
  class Mapping final : public Allocator {
   public:
    Mapping(const std::filesystem::path& path, TableHeader& header, const Shape& shape, DType dtype);
    ~Mapping() override;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    void* allocate(std::size_t) override { return static_cast<std::byte*>(data_) + kTableHeaderBytes; }
    void free(void*, std::size_t) noexcept override {}
    std::byte* data() const { return static_cast<std::byte*>(data_); }

   private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
  };

  std::filesystem::path path_;
  TableHeader header_;
  Mapping mapping_;  // before the tensor that lies in it
  Tensor rows_;
};

}  // namespace engram
