#include "core/files/mapped_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/files/restarted.hpp"

namespace engram {
namespace {

std::string reason() { return std::generic_category().message(errno); }

struct Descriptor {
  int number;
  ~Descriptor() { ::close(number); }
};

std::string read_header(int file, const std::filesystem::path& path) {
  std::string bytes(kTableHeaderBytes, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        restarted([&] { return ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done)); });
    if (count < 0) refuse_table_file(path, text("must be readable, got '", reason(), "'"));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

// The descriptor is closed at once: a mapping stays valid without it.
MappedTable::Mapping::Mapping(const std::filesystem::path& path, TableHeader& header, const Shape& shape, DType dtype) {
  // Non-blocking: opening a pipe would wait for its writer.
  const Descriptor file{restarted([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    refuse_table_file(path, text("must be a readable file, got '", reason(), "'"));
  if (!S_ISREG(status.st_mode))
    refuse_table_file(path, text("must be a regular file, got a folder, device, pipe or socket"));
  header = TableHeader::parse(read_header(file.number, path), static_cast<std::uint64_t>(status.st_size), path);
  if (header.shape() != shape || header.dtype != dtype)
    refuse_table_file(
        path, text("must hold the model's table, ", dtype, " ", shape, ", got ", header.dtype, " ", header.shape(),
                   "\n  it belongs to another model, or the model is read in another precision (--dtype) than it was "
                   "written in"));
  const auto bytes = static_cast<std::size_t>(header.file_bytes());
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number, 0);
  if (data == MAP_FAILED) refuse_table_file(path, text("must be mappable, got '", reason(), "' for ", bytes, " bytes"));
  data_ = data;
  bytes_ = bytes;
  // Rows lie anywhere: what the system would fetch beside them would push others out. Only a hint.
  ::madvise(data_, bytes_, MADV_RANDOM);
}

MappedTable::Mapping::~Mapping() { ::munmap(data_, bytes_); }

MappedTable::MappedTable(const std::filesystem::path& path, const Shape& shape, DType dtype)
    : path_(path),
      mapping_(path, header_, shape, dtype),
      rows_({header_.rows, header_.stride / static_cast<std::int64_t>(size_of(dtype))}, dtype, Device{}, mapping_) {}

void MappedTable::read_ahead(const Tensor& ids) const {
  struct Pages {
    std::int64_t begin, end;
  };
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  std::vector<Pages> wanted;
  wanted.reserve(static_cast<std::size_t>(ids.count()));
  for (const std::int64_t id : std::span(ids.data<const std::int64_t>(), static_cast<std::size_t>(ids.count()))) {
    if (id < 0 || id >= header_.rows)
      throw Error(text("read_ahead: ids must be in [0, ", header_.rows, "), got ", id, " for ", path_.string()));
    const std::int64_t begin = static_cast<std::int64_t>(kTableHeaderBytes) + id * header_.stride;
    wanted.push_back({begin / page, (begin + header_.row_bytes() - 1) / page + 1});
  }
  std::ranges::sort(wanted, {}, &Pages::begin);
  for (std::size_t i = 0; i < wanted.size();) {
    Pages range = wanted[i];
    for (++i; i < wanted.size() && wanted[i].begin <= range.end; ++i) range.end = std::max(range.end, wanted[i].end);
    // Only a hint: a row that was not fetched is fetched when it is read.
    ::madvise(mapping_.data() + range.begin * page, static_cast<std::size_t>((range.end - range.begin) * page),
              MADV_WILLNEED);
  }
}

}  // namespace engram
