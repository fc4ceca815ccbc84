#pragma once
/// Products of 16x16 blocks of bf16 numbers by one warp, summed in f32: tensor cores on cards, plain loops over the
/// same lanes on the simulated device. All 32 lanes call together.
///
/// Lane l = 4 g + t has, of a block, the pairs of neighbouring columns 2 t, 2 t + 1 of rows g and g + 8, in the left
/// half and in the right one. Operands and results are spread alike, so a result can be the left operand of the next
/// product.

#include <cstdint>
#include <cstring>

#include "core/bf16.hpp"
#include "cuda/vector_access.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// This lane's part of a 16x16 block of bf16 as the left operand. Words, each with the lower column in the lower half:
/// row g of the left half, row g + 8 of it, row g of the right half, row g + 8 of it.
struct Fragment {
  std::uint32_t word[4];
};
/// The same of the right operand, in the order in which the instruction takes register pairs: row g of the left half,
/// row g of the right half, row g + 8 of the left half, row g + 8 of the right half.
struct RightFragment {
  std::uint32_t word[4];
};

/// This lane's part of a 16x16 block of f32: element e is in row row_of(e) and column column_of(e).
struct Sums {
  float value[8] = {};

  __device__ static int row_of(int e) { return static_cast<int>(threadIdx.x) % kWarpLanes / 4 + (e & 2) * 4; }
  __device__ static int column_of(int e) { return static_cast<int>(threadIdx.x) % 4 * 2 + (e & 1) + (e & 4) * 2; }
};

/// Rounded to bf16.
__device__ __forceinline__ Fragment fragment(const Sums& sums) {
  const float* v = sums.value;
  return {{rounded_pair(v[0], v[1]), rounded_pair(v[2], v[3]), rounded_pair(v[4], v[5]), rounded_pair(v[6], v[7])}};
}

/// c (16x8, four elements of a lane) += a (16x16) times the transpose of an 8x16 block, whose row g the lane has in b0
/// (left half) and b1.
__device__ __forceinline__ void mma_16x8x16(float* c, const Fragment& a, std::uint32_t b0, std::uint32_t b1) {
#if defined(ENGRAM_CUDA_SIMULATED)
  // Every lane shows its operands to the others: 64 bits at a time, as a row of 16 numbers lies in four lanes.
  const auto both = [](std::uint32_t low, std::uint32_t high) { return low | static_cast<std::uint64_t>(high) << 32; };
  simulated::count_mma();
  std::uint64_t left[kWarpLanes], right[kWarpLanes], other[kWarpLanes];
  simulated::warp_gather(ENGRAM_SITE("mma_16x8x16"), kAllLanes, both(a.word[0], a.word[1]), left);
  simulated::warp_gather(ENGRAM_SITE("mma_16x8x16"), kAllLanes, both(a.word[2], a.word[3]), right);
  simulated::warp_gather(ENGRAM_SITE("mma_16x8x16"), kAllLanes, both(b0, b1), other);
  const auto number = [](std::uint64_t four, int place) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(four >> (16 * place)) << 16);
  };
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, first = lane / 4 * 4;
  for (int e = 0; e < 4; ++e) {
    const int row = e / 2, column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; ++k) {
      // By a pointer: of two arrays GCC 12 computes the place for one alone where it checks bounds or shifts.
      const std::uint64_t* const rows = k < 8 ? left : right;
      c[e] +=
          number(rows[first + k % 8 / 2], 2 * row + k % 2) * number(other[4 * column + k % 8 / 2], k / 8 * 2 + k % 2);
    }
  }
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b0), "r"(b1));
#endif
}

/// sums += a times the transpose of b.
__device__ __forceinline__ void multiply_add(Sums& sums, const Fragment& a, const RightFragment& b) {
  mma_16x8x16(sums.value, a, b.word[0], b.word[1]);
  mma_16x8x16(sums.value + 4, a, b.word[2], b.word[3]);
}

#if !defined(ENGRAM_CUDA_SIMULATED)
/// Lane l gives the address of row l % 8 of quarter l / 8 of a block, 16 bytes in shared memory.
template <class Operand, bool kTransposed>
__device__ __forceinline__ Operand load_quarters(const bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  Operand f;
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.word[0]), "=r"(f.word[1]), "=r"(f.word[2]), "=r"(f.word[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.word[0]), "=r"(f.word[1]), "=r"(f.word[2]), "=r"(f.word[3])
                 : "r"(address)
                 : "memory");
  return f;
}
#endif

/// The 16x16 block at `block` in shared memory, rows `stride` elements apart; rows are aligned to 16 bytes. What other
/// lanes wrote there must be behind a barrier.
__device__ __forceinline__ Fragment load_fragment(const bf16* block, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::count_load(block + lane % 16 * stride + lane / 16 * 8, 16);  // what a card's lane gives
  Fragment f;
  const bf16* const first = block + lane / 4 * stride + lane % 4 * 2;
  for (int i = 0; i < 4; ++i) f.word[i] = simulated::loaded<Words<1>>(first + i % 2 * 8 * stride + i / 2 * 8).value[0];
  return f;
#else
  return load_quarters<Fragment, false>(block + lane % 16 * stride + lane / 16 * 8);
#endif
}

/// Such a block as the right operand.
__device__ __forceinline__ RightFragment load_right(const bf16* block, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::count_load(block + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8, 16);
  RightFragment f;
  const bf16* const first = block + lane / 4 * stride + lane % 4 * 2;
  for (int i = 0; i < 4; ++i) f.word[i] = simulated::loaded<Words<1>>(first + i / 2 * 8 * stride + i % 2 * 8).value[0];
  return f;
#else
  return load_quarters<RightFragment, false>(block + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
#endif
}

#if defined(ENGRAM_CUDA_SIMULATED)
/// Two neighbours of a column in one word, the upper one in the lower half.
inline std::uint32_t transposed_pair(const bf16* upper, int stride) {
  const std::uint32_t lower = simulated::loaded<bf16>(upper + stride).bits;
  return simulated::loaded<bf16>(upper).bits | lower << 16;
}
#endif

/// The transpose of such a block as the right operand.
__device__ __forceinline__ RightFragment load_right_transposed(const bf16* block, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::count_load(block + lane % 16 * stride + lane / 16 * 8, 16);
  RightFragment f;
  const bf16* const first = block + lane % 4 * 2 * stride + lane / 4;
  for (int i = 0; i < 4; ++i) f.word[i] = transposed_pair(first + i % 2 * 8 * stride + i / 2 * 8, stride);
  return f;
#else
  return load_quarters<RightFragment, true>(block + lane % 16 * stride + lane / 16 * 8);
#endif
}

/// The same as the left operand. Its quarters come in another order, which the addresses have: registers in the wrong
/// order would be copied for every product.
__device__ __forceinline__ Fragment load_fragment_transposed(const bf16* block, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::count_load(block + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8, 16);
  Fragment f;
  const bf16* const first = block + lane % 4 * 2 * stride + lane / 4;
  for (int i = 0; i < 4; ++i) f.word[i] = transposed_pair(first + i / 2 * 8 * stride + i % 2 * 8, stride);
  return f;
#else
  return load_quarters<Fragment, true>(block + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
#endif
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
