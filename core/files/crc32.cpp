#include "core/files/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace engram {
namespace {

constexpr std::size_t kSlices = 16;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

// tables[s][b]: what byte b contributes when s more bytes follow it in its group of sixteen.
constexpr Tables make_tables(std::uint32_t polynomial) {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1u) != 0 ? polynomial : 0u);
    tables[0][byte] = remainder;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xffu];
    }
  return tables;
}

template <std::uint32_t kPolynomial>
constexpr Tables kTables = make_tables(kPolynomial);
static_assert(kTables<0xedb88320u>[0][1] == 0x77073096u && kTables<0xedb88320u>[0][255] == 0x2d02ef8du);
static_assert(kTables<0x82f63b78u>[0][1] == 0xf26b8303u && kTables<0x82f63b78u>[0][255] == 0xad7d5351u);
static_assert(std::endian::native == std::endian::little, "the words below are read lowest byte first");

std::uint32_t of_word(const Tables& tables, std::uint32_t word, std::size_t slice) {
  return tables[slice + 3][word & 0xffu] ^ tables[slice + 2][word >> 8 & 0xffu] ^
         tables[slice + 1][word >> 16 & 0xffu] ^ tables[slice][word >> 24];
}

}  // namespace

template <std::uint32_t kPolynomial>
void Crc<kPolynomial>::add(std::span<const std::byte> bytes) {
  constexpr const Tables& tables = kTables<kPolynomial>;
  std::uint32_t state = state_;
  while (bytes.size() >= kSlices) {
    std::array<std::uint32_t, 4> words;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    state = of_word(tables, words[0] ^ state, 12) ^ of_word(tables, words[1], 8) ^ of_word(tables, words[2], 4) ^
            of_word(tables, words[3], 0);
    bytes = bytes.subspan(kSlices);
  }
  for (const std::byte byte : bytes)
    state = (state >> 8) ^ tables[0][(state ^ static_cast<std::uint32_t>(byte)) & 0xff];
  state_ = state;
}

template class Crc<0xedb88320u>;
template class Crc<0x82f63b78u>;

}  // namespace engram
