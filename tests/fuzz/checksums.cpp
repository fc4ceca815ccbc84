#include "tests/fuzz/checksums.hpp"

#include <cstdint>
#include <optional>
#include <span>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/little_endian.hpp"
#include "core/files/crc32.hpp"
#include "core/files/safetensors_header.hpp"
#include "core/files/table_file.hpp"

namespace engram::fuzz {
namespace {

std::uint32_t crc_of(std::string_view bytes) {
  Crc32 crc;
  crc.add(std::as_bytes(std::span(bytes)));
  return crc.value();
}

void put(std::string& file, std::size_t at, std::uint64_t number, int bytes) {
  std::string written;
  data::put_number(written, number, bytes);
  file.replace(at, written.size(), written);
}

}  // namespace

std::string with_safetensors_checksum(std::string_view file) {
  std::string repaired(file);
  const std::size_t key = file.find(kChecksumKey), value = file.find("crc32:", key);
  if (key == file.npos || value == file.npos) return repaired;
  const std::size_t digits = value + std::string_view("crc32:").size();
  if (digits + kChecksumDigits > file.size()) return repaired;
  repaired.replace(digits, kChecksumDigits, kChecksumDigits, '0');
  const std::string written = checksum_text(crc_of(repaired));
  return repaired.replace(digits, kChecksumDigits, written, written.size() - kChecksumDigits, kChecksumDigits);
}

std::string with_zip_checksums(std::string_view file) {
  std::string repaired(file);
  constexpr std::size_t kEntry = 46, kLocal = 30;
  for (std::size_t at = file.find("PK\1\2"); at != file.npos; at = file.find("PK\1\2", at + 4)) {
    if (file.size() - at < kEntry) break;
    const std::uint64_t size = data::take_number(file, at + 20, 4), local = data::take_number(file, at + 42, 4);
    if (local > file.size() || file.size() - local < kLocal) continue;
    const std::uint64_t begin =
        local + kLocal + data::take_number(file, local + 26, 2) + data::take_number(file, local + 28, 2);
    if (begin > file.size() || file.size() - begin < size) continue;
    const std::uint32_t crc = crc_of(file.substr(begin, size));
    put(repaired, at + 16, crc, 4);
    put(repaired, local + 14, crc, 4);
  }
  return repaired;
}

std::string with_table_checksum(std::string_view file) {
  std::string repaired(file);
  constexpr std::size_t kAt = kTableHeaderBytes - 4;
  if (file.size() >= kTableHeaderBytes) put(repaired, kAt, crc_of(file.substr(0, kAt)), 4);
  return repaired;
}

std::string with_data_hashes(std::string_view file) {
  std::string repaired(file);
  constexpr std::size_t kHeader = 56, kContent = 40, kOwn = 48;
  if (file.size() < kHeader) return repaired;
  put(repaired, kContent, data::hash_of(file.substr(kHeader)), 8);
  put(repaired, kOwn, data::hash_of(std::string_view(repaired).substr(0, kOwn)), 8);
  return repaired;
}

}  // namespace engram::fuzz
