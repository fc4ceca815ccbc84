#pragma once
/// Products of 64 rows by a warpgroup: the 128 threads of four neighbouring warps, which call together. A second way
/// beside cuda/mma.cuh, of compute capability 9.0 alone: tensor cores read the right operand from shared memory
/// themselves, once for all four warps, where a warp of the other way loads it into registers for itself. PTX ISA,
/// "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (wgmma).
///
/// A warp has 16 of the rows, and its lanes have of them what cuda/mma.cuh says: so the same Fragment and Sums serve
/// both ways, and both add in the same order.
///
/// The right operand is a tile of rows of 64 numbers. Tensor cores see shared memory through a door of their own: a
/// thread that has stored its part with store_operand() calls operands_stored(), and a barrier of the block comes
/// before the product. After a product a barrier comes before the next store. The simulated device holds kernels to
/// that (cuda/simulated/warpgroup.hpp).

#include "cuda/async_copy.cuh"
#include "cuda/mma.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kWarpgroupThreads = 128;
/// Numbers of a row of a tile, which lie side by side, and what a tile's address is a multiple of, bytes.
inline constexpr int kOperandColumns = 64;
inline constexpr std::size_t kOperandAlignment = 1024;
/// Blocks of 16 columns: the inner places of products with rows.
inline constexpr int kOperandBlocks = kOperandColumns / 16;

/// Where eight neighbouring numbers of a row of a tile lie, the first being in column `column`, a multiple of 8. Of
/// eight rows the same columns lie in eight places of a row, so that they are in different banks: the 128-byte swizzle
/// of the instruction.
__device__ __forceinline__ int operand_place(int row, int column) {
  return row * kOperandColumns + (column ^ row % 8 * 8);
}

__device__ __forceinline__ void store_operand(bf16* tile, int row, int column, const Words<4>& eight) {
  Words<4>* const to = reinterpret_cast<Words<4>*>(tile + operand_place(row, column));
#if defined(ENGRAM_CUDA_SIMULATED)
  store_as(to, eight);
  simulated::operand_written(ENGRAM_SITE("store_operand"), to, sizeof eight);
#else
  *to = eight;
#endif
}

/// The same of eight numbers in global memory, by an asynchronous copy (cuda/async_copy.cuh): operands_stored() comes
/// after the wait for it.
__device__ __forceinline__ void copy_operand(bf16* tile, int row, int column, const void* from, bool exists = true) {
  begin_copy<true>(tile + operand_place(row, column), from, exists);
}

/// 16 rows of a tile, which begin at a multiple of 8, and 16 columns from `column` on, as the left operand
/// (load_fragment of cuda/mma.cuh).
__device__ __forceinline__ Fragment load_operand_fragment(const bf16* rows, int column) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes);
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::count_load(rows + operand_place(lane % 16, column + lane / 16 * 8), 16);  // what a card's lane gives
  Fragment f;
  for (int i = 0; i < 4; ++i) {
    const bf16* const eight = rows + operand_place(lane / 4 + i % 2 * 8, column + i / 2 * 8);
    f.word[i] = simulated::loaded<Words<1>>(eight + lane % 4 * 2).value[0];
  }
  return f;
#else
  return load_quarters<Fragment, false>(rows + operand_place(lane % 16, column + lane / 16 * 8));
#endif
}

/// By every thread that stored, before the barrier.
__device__ __forceinline__ void operands_stored() {
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::operands_stored();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// The instruction's name for the operand at `tile`: its address; 1, for the distance that this layout has no use for;
/// 1,024 bytes from eight rows to the next eight; and the swizzle. PTX ISA, "Matrix Descriptor Format".
__device__ __forceinline__ std::uint64_t operand_descriptor(const bf16* tile) {
#if defined(ENGRAM_CUDA_SIMULATED)
  const std::uint64_t address = simulated::operand_address(ENGRAM_SITE("operand_descriptor"), tile);
#else
  const std::uint64_t address = __cvta_generic_to_shared(tile);
#endif
  constexpr std::uint64_t kRest = std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
  return (address & 0x3ffff) >> 4 | kRest;
}

// What is added to a descriptor from 16 inner places to the next: 32 bytes along a row, or 16 rows.
inline constexpr int kStepAlongRows = 32 >> 4, kStepAcrossRows = 16 * 128 >> 4;

// One statement from the fence to the wait: nothing can come between an instruction and the registers that it fills.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(ENGRAM_CUDA_SIMULATED)
#define ENGRAM_SUMS_8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define ENGRAM_SUMS_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define ENGRAM_SUMS_32                                                                                    \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ENGRAM_PRODUCT(columns, sums, left, adds, transposed)                                      \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 " sums ", " left ", right, " adds \
  ", 1, 1, " transposed ";\n"
#define ENGRAM_BEGIN_PRODUCTS(right, zero)                                                                 \
  "{\n.reg .pred fresh, adds;\n.reg .b64 right;\nsetp.ne.b32 fresh, " zero ", 0;\nsetp.eq.b32 adds, " zero \
  ", 0;\n"                                                                                                 \
  "mov.b64 right, " right ";\nwgmma.fence.sync.aligned;\n"
#define ENGRAM_NEXT_OPERAND(step) "add.s64 right, right, " step ";\n"
#define ENGRAM_END_PRODUCTS "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}\n"
#define ENGRAM_OUT(block)                                                                                         \
  "+f"(sums[block].value[0]), "+f"(sums[block].value[1]), "+f"(sums[block].value[2]), "+f"(sums[block].value[3]), \
      "+f"(sums[block].value[4]), "+f"(sums[block].value[5]), "+f"(sums[block].value[6]), "+f"(sums[block].value[7])
#define ENGRAM_LEFT(step) \
  "r"(left[step].word[0]), "r"(left[step].word[1]), "r"(left[step].word[2]), "r"(left[step].word[3])
#endif

/// sums = left (64 x 64) times the transpose of 16 kBlocks rows of a tile: element (r, c) is row r times row c of them,
/// block c / 16. kBlocks: 1, 2 or 4; the rows begin at a multiple of 8.
template <int kBlocks>
__device__ __forceinline__ void multiply_by_rows(Sums (&sums)[kBlocks], const Fragment (&left)[kOperandBlocks],
                                                 const bf16* rows) {
  static_assert(kBlocks == 1 || kBlocks == 2 || kBlocks == 4);
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::warpgroup_product(ENGRAM_SITE("multiply_by_rows"), {.right = operand_descriptor(rows),
                                                                 .step = kStepAlongRows,
                                                                 .columns = 16 * kBlocks,
                                                                 .steps = kOperandBlocks,
                                                                 .transposed = false,
                                                                 .adds = false,
                                                                 .left = left[0].word,
                                                                 .sums = sums[0].value});
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kBlocks == 4) {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%48", "%49")                                         //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%32, %33, %34, %35}", "fresh", "0")  //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%36, %37, %38, %39}", "adds", "0")   //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%40, %41, %42, %43}", "adds", "0")   //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%44, %45, %46, %47}", "adds", "0")   //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0), ENGRAM_OUT(1), ENGRAM_OUT(2), ENGRAM_OUT(3)
                 : ENGRAM_LEFT(0), ENGRAM_LEFT(1), ENGRAM_LEFT(2), ENGRAM_LEFT(3), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  } else if constexpr (kBlocks == 2) {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%32", "%33")                                         //
                 ENGRAM_PRODUCT("32", ENGRAM_SUMS_16, "{%16, %17, %18, %19}", "fresh", "0")  //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("32", ENGRAM_SUMS_16, "{%20, %21, %22, %23}", "adds", "0")   //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("32", ENGRAM_SUMS_16, "{%24, %25, %26, %27}", "adds", "0")   //
                 ENGRAM_NEXT_OPERAND("2")                                                    //
                 ENGRAM_PRODUCT("32", ENGRAM_SUMS_16, "{%28, %29, %30, %31}", "adds", "0")   //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0), ENGRAM_OUT(1)
                 : ENGRAM_LEFT(0), ENGRAM_LEFT(1), ENGRAM_LEFT(2), ENGRAM_LEFT(3), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  } else {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%24", "%25")                                       //
                 ENGRAM_PRODUCT("16", ENGRAM_SUMS_8, "{%8, %9, %10, %11}", "fresh", "0")   //
                 ENGRAM_NEXT_OPERAND("2")                                                  //
                 ENGRAM_PRODUCT("16", ENGRAM_SUMS_8, "{%12, %13, %14, %15}", "adds", "0")  //
                 ENGRAM_NEXT_OPERAND("2")                                                  //
                 ENGRAM_PRODUCT("16", ENGRAM_SUMS_8, "{%16, %17, %18, %19}", "adds", "0")  //
                 ENGRAM_NEXT_OPERAND("2")                                                  //
                 ENGRAM_PRODUCT("16", ENGRAM_SUMS_8, "{%20, %21, %22, %23}", "adds", "0")  //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0)
                 : ENGRAM_LEFT(0), ENGRAM_LEFT(1), ENGRAM_LEFT(2), ENGRAM_LEFT(3), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  }
#elif defined(__CUDA_ARCH__)
  __trap();  // no such card asks for it
#endif
}

/// sums (64 x 64) += left (64 x 16 kBlocks) times as many rows of a tile. The rows begin at a multiple of 8.
template <int kBlocks>
__device__ __forceinline__ void multiply_add_rows(Sums (&sums)[kOperandBlocks], const Fragment (&left)[kBlocks],
                                                  const bf16* rows) {
  static_assert(kBlocks == 1 || kBlocks == 2 || kBlocks == 4);
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::warpgroup_product(ENGRAM_SITE("multiply_add_rows"), {.right = operand_descriptor(rows),
                                                                  .step = kStepAcrossRows,
                                                                  .columns = kOperandColumns,
                                                                  .steps = kBlocks,
                                                                  .transposed = true,
                                                                  .adds = true,
                                                                  .left = left[0].word,
                                                                  .sums = sums[0].value});
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kBlocks == 4) {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%48", "%49")                                        //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%32, %33, %34, %35}", "adds", "1")  //
                 ENGRAM_NEXT_OPERAND("128")                                                 //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%36, %37, %38, %39}", "adds", "1")  //
                 ENGRAM_NEXT_OPERAND("128")                                                 //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%40, %41, %42, %43}", "adds", "1")  //
                 ENGRAM_NEXT_OPERAND("128")                                                 //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%44, %45, %46, %47}", "adds", "1")  //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0), ENGRAM_OUT(1), ENGRAM_OUT(2), ENGRAM_OUT(3)
                 : ENGRAM_LEFT(0), ENGRAM_LEFT(1), ENGRAM_LEFT(2), ENGRAM_LEFT(3), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  } else if constexpr (kBlocks == 2) {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%40", "%41")                                        //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%32, %33, %34, %35}", "adds", "1")  //
                 ENGRAM_NEXT_OPERAND("128")                                                 //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%36, %37, %38, %39}", "adds", "1")  //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0), ENGRAM_OUT(1), ENGRAM_OUT(2), ENGRAM_OUT(3)
                 : ENGRAM_LEFT(0), ENGRAM_LEFT(1), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  } else {
    asm volatile(ENGRAM_BEGIN_PRODUCTS("%36", "%37")                                        //
                 ENGRAM_PRODUCT("64", ENGRAM_SUMS_32, "{%32, %33, %34, %35}", "adds", "1")  //
                 ENGRAM_END_PRODUCTS
                 : ENGRAM_OUT(0), ENGRAM_OUT(1), ENGRAM_OUT(2), ENGRAM_OUT(3)
                 : ENGRAM_LEFT(0), "l"(operand_descriptor(rows)), "r"(0)
                 : "memory");
  }
#elif defined(__CUDA_ARCH__)
  __trap();  // no such card asks for it
#endif
}

#undef ENGRAM_SUMS_8
#undef ENGRAM_SUMS_16
#undef ENGRAM_SUMS_32
#undef ENGRAM_PRODUCT
#undef ENGRAM_BEGIN_PRODUCTS
#undef ENGRAM_NEXT_OPERAND
#undef ENGRAM_END_PRODUCTS
#undef ENGRAM_OUT
#undef ENGRAM_LEFT

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
