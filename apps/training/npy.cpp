#include "apps/training/npy.hpp"

#include <bit>
#include <string>

#include "core/durable_file.hpp"
#include "core/error.hpp"

namespace engram {

void write_npy(const std::filesystem::path& path, std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "the numbers are written as they are in memory");
  std::string header = text("{'descr': '<f4', 'fortran_order': False, 'shape': (", values.size(), ",), }");
  // Magic, version and length take ten bytes; data begin at a multiple of 64, after a newline.
  constexpr std::size_t kBefore = 10, kUnit = 64;
  header.append(kUnit - (kBefore + header.size() + 1) % kUnit, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(length & 0xff);
  start += static_cast<char>(length >> 8);
  write_durably(path, [&](DurableFile& file) {
    file.append(start);
    file.append(header);
    file.append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  });
}

}  // namespace engram
