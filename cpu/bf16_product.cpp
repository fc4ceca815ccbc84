#include "cpu/bf16_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "cpu/loop_hints.hpp"

// Any x86-64 processor may be asked. The code for those that have the instructions is in kernels that are built for
// AVX-512, native ones or a portable build's module: a portable program itself has none of it. No level of x86-64 has
// bf16, so functions that use it say so themselves (Clang 12 and GCC 11 know these instructions).
#if defined(__x86_64__) && defined(__linux__)
#define ENGRAM_ASKS_PROCESSOR 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define ENGRAM_BF16_PRODUCTS 1
#include <immintrin.h>
#endif
#endif

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined vectors inside its own intrinsics for mistakes of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace engram::cpu {

namespace {

#if defined(ENGRAM_ASKS_PROCESSOR)
Bf16Instructions ask() {
  // Who asks for kernels of older processors (instruction_level.hpp) gets their products too.
  const char* const level = std::getenv("ENGRAM_CPU");
  if (level != nullptr && std::string_view(level) != "avx512") return Bf16Instructions::none;
  constexpr unsigned kAvx512f = 1u << 16, kAvx512bw = 1u << 30, kAvx512vl = 1u << 31;  // leaf 7, ebx
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;                         // leaf 7, edx
  constexpr unsigned kAvx512Bf16 = 1u << 5;                                            // leaf 7.1, eax
  unsigned a = 0, b = 0, c = 0, d = 0, more = 0, unused = 0;
  // The system's part: without it the registers' upper parts are lost when it switches between programs.
  if (__builtin_cpu_supports("avx512bw") == 0 || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 ||
      __get_cpuid_count(7, 1, &more, &unused, &unused, &unused) == 0)
    return Bf16Instructions::none;
  const unsigned vectors = kAvx512f | kAvx512bw | kAvx512vl, tiles = kAmxBf16 | kAmxTile;
  if ((b & vectors) != vectors || (more & kAvx512Bf16) == 0) return Bf16Instructions::none;
  // Linux hands out the registers of tiles on request (arch_prctl(2): ARCH_REQ_XCOMP_PERM, component 18).
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  const bool granted = (d & tiles) == tiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted ? Bf16Instructions::tiles : Bf16Instructions::vectors;
}
#else
Bf16Instructions ask() { return Bf16Instructions::none; }
#endif

}  // namespace

Bf16Instructions processor_bf16_instructions() {
  static const Bf16Instructions found = ask();
  return found;
}

Bf16Instructions useful_bf16_instructions() {
  const Bf16Instructions found = processor_bf16_instructions();
#if defined(ENGRAM_ASKS_PROCESSOR)
  if (found == Bf16Instructions::vectors && __builtin_cpu_is("intel") != 0) return Bf16Instructions::none;
#endif
  return found;
}

#if defined(ENGRAM_BF16_PRODUCTS)
namespace {

#define ENGRAM_VECTORS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define ENGRAM_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

constexpr std::int64_t kTile = kTileRows * kTileDepth;  // elements

/// An operand as it lies: element (line, place) at data[line * stride + place].
struct Source {
  const float* data;
  std::int64_t stride, lines, places;
};

/// 16 places of a line; with kWhole all of them are there.
template <bool kWhole>
ENGRAM_VECTORS inline __m512 load_row(const Source& s, std::int64_t line, std::int64_t place) {
  const float* const from = s.data + line * s.stride + place;
  if constexpr (kWhole) return _mm512_loadu_ps(from);
  const std::int64_t left = s.places - place;
  if (line >= s.lines || left <= 0) return _mm512_setzero_ps();
  if (left >= 16) return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), from);
}

/// 16 rows of 16 pairs: row i is line + i, pairs are neighbours in memory.
template <bool kWhole>
ENGRAM_VECTORS inline void pairs_along_lines(const Source& s, std::int64_t line, std::int64_t place, __m512i* rows) {
  ENGRAM_UNROLL(16)
  for (std::int64_t i = 0; i < 16; ++i)
    rows[i] = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(load_row<kWhole>(s, line + i, place + 16), load_row<kWhole>(s, line + i, place)));
}

/// 16 rows of 16 pairs: row i is places place .. place + 15 of two neighbouring lines, the first of them line + 2 i.
template <bool kWhole>
ENGRAM_VECTORS inline void pairs_across_lines(const Source& s, std::int64_t line, std::int64_t place, __m512i* rows) {
  alignas(64) static constexpr std::uint16_t kInterleave[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kInterleave);
  ENGRAM_UNROLL(16)
  for (std::int64_t i = 0; i < 16; ++i) {
    const __m512bh both =
        _mm512_cvtne2ps_pbh(load_row<kWhole>(s, line + 2 * i + 1, place), load_row<kWhole>(s, line + 2 * i, place));
    rows[i] = _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both));
  }
}

/// Transposes 16 x 16 pairs.
ENGRAM_VECTORS inline void transpose(__m512i* r) {
  __m512i t[16];
  ENGRAM_UNROLL(8)
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  ENGRAM_UNROLL(8)
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  ENGRAM_UNROLL(8)
  for (int i = 0; i < 8; ++i) {
    const int at = i / 4 * 8 + i % 4;
    t[at] = _mm512_shuffle_i32x4(r[at], r[at + 4], 0x88);
    t[at + 4] = _mm512_shuffle_i32x4(r[at], r[at + 4], 0xdd);
  }
  ENGRAM_UNROLL(8)
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

template <bool kInnerAlong, bool kInnerRows, bool kWhole>
ENGRAM_VECTORS inline void pack_tile(const Source& s, std::int64_t strip, std::int64_t tile, bf16* to) {
  __m512i rows[16];
  if constexpr (kInnerAlong)
    pairs_along_lines<kWhole>(s, strip * kTileRows, tile * kTileDepth, rows);
  else
    pairs_across_lines<kWhole>(s, tile * kTileDepth, strip * kTileRows, rows);
  if constexpr (kInnerAlong == kInnerRows) transpose(rows);
  ENGRAM_UNROLL(16)
  for (std::int64_t i = 0; i < 16; ++i) _mm512_store_si512(to + i * kTileDepth, rows[i]);
}

/// Strips of an operand that lies with its inner axis along its lines (`inner_lies_along`) or across them; tiles with
/// rows of the operand's outer axis (a) or of the inner one (b: `inner_rows`).
template <bool kInnerAlong, bool kInnerRows>
ENGRAM_VECTORS void pack(const Source& s, std::int64_t tiles, std::int64_t begin, std::int64_t end, bf16* packed) {
  const std::int64_t whole_tiles = (kInnerAlong ? s.places : s.lines) / kTileDepth;
  const std::int64_t whole_strips = (kInnerAlong ? s.lines : s.places) / kTileRows;
  const auto one = [&](std::int64_t strip, std::int64_t tile) ENGRAM_VECTORS {
    bf16* const to = packed + (strip * tiles + tile) * kTile;
    if (strip < whole_strips && tile < whole_tiles)
      pack_tile<kInnerAlong, kInnerRows, true>(s, strip, tile, to);
    else
      pack_tile<kInnerAlong, kInnerRows, false>(s, strip, tile, to);
  };
  // Along the lines, so that each is read from its beginning to its end.
  if constexpr (kInnerAlong) {
    for (std::int64_t strip = begin; strip < end; ++strip)
      for (std::int64_t tile = 0; tile < tiles; ++tile) one(strip, tile);
  } else {
    for (std::int64_t tile = 0; tile < tiles; ++tile)
      for (std::int64_t strip = begin; strip < end; ++strip) one(strip, tile);
  }
}

/// Eight tiles of 16 rows of 64 bytes.
struct TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// What a product of strips reads and writes.
struct Strips {
  const bf16 *a, *b;
  std::int64_t a_strip, b_strip;  ///< elements between strips
  std::int64_t tiles;             ///< of the inner axis
};

/// `rows` x `columns` tiles (1 or 2) of sums into tiles 0 to 3, starting from zero or from what is in `sums`.
template <int kRows, int kColumns>
ENGRAM_TILES inline void sum_tiles(const Strips& s, bool add, float* sums, std::int64_t sums_stride) {
  const auto stride = static_cast<std::size_t>(sums_stride) * sizeof(float);
  float* const below = sums + 16 * sums_stride;
  if (add) {
    _tile_loadd(0, sums, stride);
    if constexpr (kColumns == 2) _tile_loadd(1, sums + 16, stride);
    if constexpr (kRows == 2) _tile_loadd(2, below, stride);
    if constexpr (kRows == 2 && kColumns == 2) _tile_loadd(3, below + 16, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t tile = 0; tile < s.tiles; ++tile) {
    const bf16 *const a = s.a + tile * kTile, *const b = s.b + tile * kTile;
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, b + s.b_strip, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRows == 2) {
      _tile_loadd(5, a + s.a_strip, 64);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kColumns == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, stride);
  if constexpr (kColumns == 2) _tile_stored(1, sums + 16, stride);
  if constexpr (kRows == 2) _tile_stored(2, below, stride);
  if constexpr (kRows == 2 && kColumns == 2) _tile_stored(3, below + 16, stride);
}

/// c[rows, columns] (set or add) factor sums[32, 32].
ENGRAM_VECTORS inline void write_sums(const float* sums, std::int64_t rows, std::int64_t columns, float factor,
                                      bool add, float* c, std::int64_t c_stride) {
  const __m512 times = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; j += 16) {
      const std::int64_t left = columns - j;
      const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1);
      float* const to = c + i * c_stride + j;
      const __m512 sum = _mm512_load_ps(sums + i * 32 + j);
      const __m512 result =
          add ? _mm512_fmadd_ps(times, sum, _mm512_maskz_loadu_ps(mask, to)) : _mm512_mul_ps(times, sum);
      _mm512_mask_storeu_ps(to, mask, result);
    }
}

/// Sums of `kLines` lines of a strip of a with `kColumns` strips of b, a vector each. Every number of a that is read
/// serves all strips of b, every vector of b all lines: with 8 x 2 sums the processor multiplies as fast as it can (520
/// GFLOP/s on a core of a Zen 5, 460 with 16 x 1), and all of them stay in registers.
template <int kLines, int kColumns>
ENGRAM_VECTORS inline void sum_lines(const bf16* a, const bf16* b, const Strips& s, bool add, float* sums,
                                     std::int64_t sums_stride) {
  __m512 sum[kLines][kColumns];
  for (int i = 0; i < kLines; ++i)
    for (int j = 0; j < kColumns; ++j)
      sum[i][j] = add ? _mm512_loadu_ps(sums + i * sums_stride + j * 16) : _mm512_setzero_ps();
  for (std::int64_t tile = 0; tile < s.tiles; ++tile, a += kTile, b += kTile) {
    ENGRAM_UNROLL(4)
    for (std::int64_t pair = 0; pair < 16; ++pair) {
      __m512bh columns[kColumns];
      for (int j = 0; j < kColumns; ++j)
        columns[j] = reinterpret_cast<__m512bh>(_mm512_load_si512(b + j * s.b_strip + pair * kTileDepth));
      for (int i = 0; i < kLines; ++i) {
        int of_line;
        std::memcpy(&of_line, a + i * kTileDepth + 2 * pair, sizeof of_line);
        const auto line = reinterpret_cast<__m512bh>(_mm512_set1_epi32(of_line));
        for (int j = 0; j < kColumns; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], line, columns[j]);
      }
    }
  }
  for (int i = 0; i < kLines; ++i)
    for (int j = 0; j < kColumns; ++j) _mm512_storeu_ps(sums + i * sums_stride + j * 16, sum[i][j]);
}

/// Sums by vectors: a row of a tile's sums is one.
template <int kRows, int kColumns>
ENGRAM_VECTORS inline void sum_vectors(const Strips& s, bool add, float* sums, std::int64_t sums_stride) {
  constexpr int kLines = 16 / kColumns;
  for (int line = 0; line < 16 * kRows; line += kLines)
    sum_lines<kLines, kColumns>(s.a + line / 16 * s.a_strip + line % 16 * kTileDepth, s.b, s, add,
                                sums + line * sums_stride, sums_stride);
}

template <Bf16Instructions kWith, int kRows, int kColumns>
ENGRAM_TILES inline void sum_block(const Strips& s, bool add, float* sums, std::int64_t sums_stride) {
  if constexpr (kWith == Bf16Instructions::tiles)
    sum_tiles<kRows, kColumns>(s, add, sums, sums_stride);
  else
    sum_vectors<kRows, kColumns>(s, add, sums, sums_stride);
}

template <Bf16Instructions kWith, int kRows, int kColumns>
ENGRAM_TILES inline void block(const Strips& s, std::int64_t rows, std::int64_t columns, float factor, bool add,
                               float* c, std::int64_t c_stride) {
  if (factor == 1.0f && rows == 16 * kRows && columns == 16 * kColumns)
    return sum_block<kWith, kRows, kColumns>(s, add, c, c_stride);
  alignas(64) float sums[32 * 32];
  sum_block<kWith, kRows, kColumns>(s, false, sums, 32);
  write_sums(sums, rows, columns, factor, add, c, c_stride);
}

// Tiles of the inner axis in one pass over c, and strips of b in one pass over a: 512 KiB of b, which stay in the
// second cache while a's strips, 64 KiB a pair, go by.
constexpr std::int64_t kPassTiles = 32, kPassStrips = 16;

template <Bf16Instructions kWith>
ENGRAM_TILES void multiply(const Gemm<float>& g, const bf16* a, const PackedB& b, const StripRange& range) {
  const std::int64_t tiles = tiles_of_strip(g.k);
  for (std::int64_t first = 0; first < tiles; first += kPassTiles)
    for (std::int64_t pass = range.b_begin; pass < range.b_end; pass += kPassStrips) {
      const std::int64_t pass_end = std::min(pass + kPassStrips, range.b_end);
      const bool add = first > 0 || g.write == Write::add;
      for (std::int64_t i = range.a_begin; i < range.a_end; i += 2)
        for (std::int64_t j = pass; j < pass_end; j += 2) {
          const Strips s{a + (i * tiles + first) * kTile, b.data + j * b.strip + first * kTile, tiles * kTile, b.strip,
                         std::min(kPassTiles, tiles - first)};
          const std::int64_t rows = std::min<std::int64_t>(g.m - i * 16, i + 1 < range.a_end ? 32 : 16);
          const std::int64_t columns = std::min<std::int64_t>(g.n - j * 16, j + 1 < pass_end ? 32 : 16);
          float* const c = g.c + i * 16 * g.c_stride + j * 16;
          if (rows > 16 && columns > 16)
            block<kWith, 2, 2>(s, rows, columns, g.factor, add, c, g.c_stride);
          else if (rows > 16)
            block<kWith, 2, 1>(s, rows, columns, g.factor, add, c, g.c_stride);
          else if (columns > 16)
            block<kWith, 1, 2>(s, rows, columns, g.factor, add, c, g.c_stride);
          else
            block<kWith, 1, 1>(s, rows, columns, g.factor, add, c, g.c_stride);
        }
    }
}

ENGRAM_TILES void multiply_tiles(const Gemm<float>& g, const bf16* a, const PackedB& b, const StripRange& range) {
  // GCC believes that this reads 8 bytes, and might not write the others of a local variable.
  alignas(64) static constexpr TileShapes kShapes;
  _tile_loadconfig(&kShapes);
  multiply<Bf16Instructions::tiles>(g, a, b, range);
  _tile_release();
}

}  // namespace

Bf16Instructions available_bf16_instructions() { return processor_bf16_instructions(); }
Bf16Instructions bf16_instructions() { return useful_bf16_instructions(); }

void pack_a(const Gemm<float>& g, std::int64_t begin, std::int64_t end, bf16* packed) {
  const std::int64_t tiles = tiles_of_strip(g.k);
  if (g.transpose_a == Transpose::no)
    pack<true, false>({g.a, g.a_stride, g.m, g.k}, tiles, begin, end, packed);
  else
    pack<false, false>({g.a, g.a_stride, g.k, g.m}, tiles, begin, end, packed);
}

void pack_b(const Gemm<float>& g, std::int64_t begin, std::int64_t end, bf16* packed) {
  const std::int64_t tiles = tiles_of_strip(g.k);
  if (g.transpose_b == Transpose::yes)
    pack<true, true>({g.b, g.b_stride, g.n, g.k}, tiles, begin, end, packed);
  else
    pack<false, true>({g.b, g.b_stride, g.k, g.n}, tiles, begin, end, packed);
}

void multiply_strips(const Gemm<float>& g, const bf16* a, const PackedB& b, const StripRange& strips,
                     Bf16Instructions instructions) {
  if (instructions == Bf16Instructions::tiles)
    multiply_tiles(g, a, b, strips);
  else
    multiply<Bf16Instructions::vectors>(g, a, b, strips);
}

#else

namespace {
[[noreturn]] void missing() { throw DeviceError("matmul: these kernels have no instructions for bf16 products"); }
}  // namespace

Bf16Instructions available_bf16_instructions() { return Bf16Instructions::none; }
Bf16Instructions bf16_instructions() { return Bf16Instructions::none; }
void pack_a(const Gemm<float>&, std::int64_t, std::int64_t, bf16*) { missing(); }
void pack_b(const Gemm<float>&, std::int64_t, std::int64_t, bf16*) { missing(); }
void multiply_strips(const Gemm<float>&, const bf16*, const PackedB&, const StripRange&, Bf16Instructions) {
  missing();
}

#endif

}  // namespace engram::cpu
