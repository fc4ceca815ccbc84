#include "core/files/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/files/crc32.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/mapped_file.hpp"
#include "core/files/safetensors_header.hpp"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little, "the file holds the bytes of the host");
constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;

template <class... Parts>
[[noreturn]] void fail_to_read(const std::filesystem::path& path, const Parts&... parts) {
  throw FileError(text("safetensors: '", path.string(), "': ", parts...));
}

MappedFile map_tensors(const std::filesystem::path& path) {
  MappedFile file = map_file(path, "safetensors");
  if (file.size < kLengthBytes)
    fail_to_read(path, "must begin with the 8 bytes of the header's length, got a file of ", file.size, " bytes",
                 "\n  the file was cut short or is not of this format");
  return file;
}

void check_checksum(const std::filesystem::path& path, std::span<const std::byte> file, std::string_view header,
                    std::string_view stated) {
  const std::optional<std::size_t> found_digits = find_checksum_digits(header, stated);
  if (!found_digits)
    fail_to_read(path, "the metadata entry ", kChecksumKey,
                 " must be \"crc32:\" and eight digits, without escapes, got something else");
  const std::size_t digits = kLengthBytes + *found_digits;
  std::array<std::byte, kChecksumDigits> zeros;
  zeros.fill(std::byte{'0'});
  Crc32 crc;
  crc.add(file.first(digits));
  crc.add(zeros);
  crc.add(file.subspan(digits + kChecksumDigits));
  if (const std::string found = checksum_text(crc.value()); found != stated)
    fail_to_read(path, "its contents must have the checksum ", stated, ", got ", found,
                 "\n  the file was damaged after it was written; take another copy of it");
}

std::vector<const TensorSource*> file_order(std::span<const TensorSource> tensors) {
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return std::pair(size_of(b->dtype), std::string_view(a->name)) <
           std::pair(size_of(a->dtype), std::string_view(b->name));
  });
  return order;
}

/// By its first bytes: an archive (ZIP), or a pickle of protocol 2 to 5, the two forms that PyTorch writes.
bool looks_like_pytorch(std::span<const std::byte> file) {
  const auto begins = [&](std::string_view bytes) {
    return file.size() >= bytes.size() && std::memcmp(file.data(), bytes.data(), bytes.size()) == 0;
  };
  return begins("PK\x03\x04") ||
         (begins("\x80") && file.size() > 1 && file[1] >= std::byte{2} && file[1] <= std::byte{5});
}

}  // namespace

TensorSource host_tensor(std::string name, DType dtype, Shape shape, const void* data) {
  return {std::move(name), dtype, shape, [data](std::size_t offset, std::span<std::byte> to) {
            std::memcpy(to.data(), static_cast<const std::byte*>(data) + offset, to.size());
          }};
}

void read_in_file_order(std::span<const TensorSource> tensors,
                        const std::function<void(std::span<const std::byte> chunk)>& take) {
  std::vector<std::byte> chunk;
  for (const TensorSource* tensor : file_order(tensors)) {
    const std::size_t bytes = static_cast<std::size_t>(tensor->shape.count()) * size_of(tensor->dtype);
    for (std::size_t offset = 0; offset < bytes; offset += chunk.size()) {
      chunk.resize(std::min(TensorSource::kChunkBytes, bytes - offset));
      tensor->read(offset, chunk);
      take(chunk);
    }
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata) {
  const std::vector<const TensorSource*> order = file_order(tensors);
  const std::string header = make_safetensors_header(order, metadata);
  if (header.size() > kLongestHeader)
    throw Error(text("safetensors: the header must be of at most ", kLongestHeader, " bytes, got ", header.size()));

  write_durably(path, [&](DurableFile& file) {
    Crc32 crc;
    const auto append = [&](std::span<const std::byte> bytes) {
      crc.add(bytes);
      file.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    const std::uint64_t length = header.size();
    append(std::as_bytes(std::span(&length, 1)));
    append(std::as_bytes(std::span(header)));
    read_in_file_order(tensors, append);
    const std::string checksum = checksum_text(crc.value());
    file.overwrite(kLengthBytes + find_checksum_digits(header, checksum_text(0)).value(),
                   std::string_view(checksum).substr(checksum.size() - kChecksumDigits));
  });
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, HalfFloats half_floats) : path_(path) {
  const MappedFile mapped = map_tensors(path);
  mapping_ = mapped.data;
  const std::span<const std::byte> file = mapped.bytes();
  const std::size_t size = mapped.size;
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > size - kLengthBytes)
    fail_to_read(path, "the header must fit the file of ", size, " bytes, got a header length of ", length,
                 looks_like_pytorch(file) ? "\n  it looks like a file of PyTorch, which engram import reads"
                                          : "\n  the file was cut short or is not of this format");
  if (length > kLongestHeader)
    fail_to_read(path, "the header must be of at most ", kLongestHeader, " bytes, got ", length);
  data_begin_ = kLengthBytes + static_cast<std::size_t>(length);
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  SafetensorsHeader parsed = parse_safetensors_header(header, size - data_begin_, path.string(), half_floats);
  if (const auto checksum = parsed.metadata.find(kChecksumKey); checksum != parsed.metadata.end()) {
    check_checksum(path, file, header, checksum->second);
    checksum_ = checksum->second;
    parsed.metadata.erase(checksum);
  }
  metadata_ = std::move(parsed.metadata);
  tensors_ = std::move(parsed.tensors);
  half_floats_ = std::move(parsed.half_floats);
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return {mapping_.get() + data_begin_ + tensor.begin, tensor.end - tensor.begin};
}

}  // namespace engram
