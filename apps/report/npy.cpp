#include "apps/report/npy.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/files/durable_file.hpp"

namespace engram {

void write_npy(const std::filesystem::path& path, std::span<const double> values, DType dtype) {
  static_assert(std::endian::native == std::endian::little, "the numbers are written as they are in memory");
  const std::size_t bytes = dispatch_float(dtype, "write_npy", []<class T>() { return sizeof(T); });
  std::string header = text("{'descr': '<f", bytes, "', 'fortran_order': False, 'shape': (", values.size(), ",), }");
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
    dispatch_float(dtype, "write_npy", [&]<class T>() {
      constexpr std::size_t kPiece = 1 << 16;
      for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
        const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
        const std::vector<T> stored(piece.begin(), piece.end());
        file.append({reinterpret_cast<const char*>(stored.data()), stored.size() * sizeof(T)});
      }
    });
  });
}

}  // namespace engram
