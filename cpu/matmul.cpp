#include "core/kernels/matmul.hpp"

#include "cpu/parallel.hpp"
#include "cpu/rounded_gemm.hpp"

namespace engram::cpu {
namespace {

// Bounds of a copy, in elements: large tables are copied piece by piece.
constexpr std::int64_t kCopiedLength = 4096;
constexpr std::int64_t kCopiedElements = std::int64_t{1} << 20;

/// A piece of an operand, copied by all threads.
template <class T>
void copy_apart(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t length, T* to) {
  parallel_chunks(rows, row_chunk(length), [&](std::int64_t begin, std::int64_t end) {
    copy_rows(from + begin * stride, stride, end - begin, length, to + begin * apart(length), apart(length));
  });
}

/// On all threads; operands whose rows collide are copied first.
template <class T>
void large_product(Step& step, const Gemm<T>& g) {
  // Each copied element should serve many multiply-adds.
  constexpr std::int64_t kWorthCopying = 32;
  const bool copy_a = g.transpose_a == Transpose::yes && rows_collide<T>(g.a_stride) && g.n >= kWorthCopying;
  const bool copy_b = g.transpose_b == Transpose::no && rows_collide<T>(g.b_stride) && g.m >= kWorthCopying;
  if (g.k == 0 || !(copy_a || copy_b)) {
    if (step.computes()) parallel_gemm(g);
    return;
  }
  const std::int64_t rows = copy_a ? std::min(g.m, kCopiedLength) : g.m;
  const std::int64_t columns = copy_b ? std::min(g.n, kCopiedLength) : g.n;
  const std::int64_t length = std::max(copy_a ? rows : 1, copy_b ? columns : 1);
  const std::int64_t inner = std::min(g.k, kCopiedElements / length);
  const std::int64_t a_size = copy_a ? inner * apart(rows) : 0, b_size = copy_b ? inner * apart(columns) : 0;
  const Workspace copies = step.workspace(static_cast<std::size_t>(a_size + b_size) * sizeof(T));
  if (!step.computes()) return;
  for (std::int64_t column = 0; column < g.n; column += columns)
    for (std::int64_t first = 0; first < g.k; first += inner) {
      Gemm<T> piece = g;
      piece.n = std::min(columns, g.n - column);
      piece.k = std::min(inner, g.k - first);
      if (first > 0) piece.write = Write::add;
      piece.b += g.transpose_b == Transpose::yes ? column * g.b_stride + first : first * g.b_stride + column;
      if (copy_b) {
        copy_apart(piece.b, g.b_stride, piece.k, piece.n, copies.data<T>() + a_size);
        piece.b = copies.data<T>() + a_size;
        piece.b_stride = apart(piece.n);
      }
      for (std::int64_t row = 0; row < g.m; row += rows) {
        piece.m = std::min(rows, g.m - row);
        piece.a = g.a + (g.transpose_a == Transpose::yes ? first * g.a_stride + row : row * g.a_stride + first);
        piece.a_stride = g.a_stride;
        if (copy_a) {
          copy_apart(piece.a, g.a_stride, piece.k, piece.m, copies.data<T>());
          piece.a = copies.data<T>();
          piece.a_stride = apart(piece.m);
        }
        piece.c = g.c + row * g.c_stride + column;
        parallel_gemm(piece);
      }
    }
}

/// On all threads, operands rounded to f32 numbers.
void rounded_values_product(Step& step, const Gemm<float>& g) {
  const RoundedOperands operands(g);
  const std::int64_t a_size = operands.a_size();
  const Workspace memory = step.workspace(static_cast<std::size_t>(a_size + operands.b_size()) * sizeof(float));
  if (!step.computes()) return;
  float* const a = memory.data<float>();
  const auto round = [](const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t length,
                        float* to) {
    parallel_chunks(rows, row_chunk(length), [&](std::int64_t begin, std::int64_t end) {
      round_rows(from + begin * from_stride, from_stride, end - begin, length, to + begin * apart(length),
                 apart(length));
    });
  };
  round(g.a, g.a_stride, operands.a_rows, operands.a_length, a);
  round(g.b, g.b_stride, operands.b_rows, operands.b_length, a + a_size);
  parallel_gemm(operands.product(g, a, a + a_size));
}

/// On all threads, by the processor's bf16 instructions.
void bf16_product(Step& step, const Gemm<float>& g) {
  const std::int64_t a_size = packed_size(g.m, g.k), rows = strips_of(g.m), columns = strips_of(g.n);
  const Workspace memory = step.workspace(static_cast<std::size_t>(a_size + packed_size(g.n, g.k)) * sizeof(bf16));
  if (!step.computes()) return;
  bf16 *const a = memory.data<bf16>(), *const b = a + a_size;
  // Strips of one piece of packing, and of each side of a piece of c.
  const std::int64_t packing = row_chunk(kTileRows * g.k), side = 16;
  const std::int64_t a_pieces = (rows + packing - 1) / packing, b_pieces = (columns + packing - 1) / packing;
  parallel_items(a_pieces + b_pieces, [&](std::int64_t item) {
    if (item < a_pieces)
      pack_a(g, item * packing, std::min(rows, (item + 1) * packing), a);
    else
      pack_b(g, (item - a_pieces) * packing, std::min(columns, (item - a_pieces + 1) * packing), b);
  });
  const std::int64_t across = (columns + side - 1) / side;
  parallel_items((rows + side - 1) / side * across, [&](std::int64_t item) {
    const std::int64_t row = item / across * side, column = item % across * side;
    multiply_strips(g, a, b, {row, std::min(rows, row + side), column, std::min(columns, column + side)});
  });
}

/// On all threads, in the step's precision.
void product_of_step(Step& step, const Gemm<double>& g) { large_product(step, g); }
void product_of_step(Step& step, const Gemm<float>& g) {
  if (step.products() == ProductPrecision::f32 || g.k == 0)
    large_product(step, g);
  else if (multiplies_bf16())
    bf16_product(step, g);
  else
    rounded_values_product(step, g);
}

void matmul(Step& step, const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
            const MatrixView& c, std::int64_t batch, double factor, Write write) {
  dispatch_float(c.tensor.dtype(), "matmul", [&]<class T>() {
    const auto product = [&](std::int64_t index) {
      return Gemm<T>{.transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .m = c.rows,
                     .n = c.columns,
                     .k = transpose_a == Transpose::yes ? a.rows : a.columns,
                     .factor = static_cast<T>(factor),
                     .a = a.data<const T>(index),
                     .a_stride = a.row_stride,
                     .b = b.data<const T>(index),
                     .b_stride = b.row_stride,
                     .write = write,
                     .c = c.data<T>(index),
                     .c_stride = c.row_stride};
    };
    // Many small products: one per thread. Few, or all into one result: each one on all threads, in order.
    if (batch >= 8 && c.batch_stride != 0) {
      const Gemm<T> any = product(0);
      const RoundingMemory rounding(step, any.m, any.n, any.k, max_threads());
      if (!step.computes()) return;
      parallel_items_on_threads(
          batch, [&](std::int64_t index, int thread) { gemm(product(index), rounding.of_thread(thread)); });
      return;
    }
    for (std::int64_t index = 0; index < batch; ++index) {
      Gemm<T> next = product(index);
      if (index > 0 && c.batch_stride == 0) next.write = Write::add;
      product_of_step(step, next);
    }
  });
}

const bool bound = kernels::matmul.bind(DeviceKind::cpu, &matmul, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
