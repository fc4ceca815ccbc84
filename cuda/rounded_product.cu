/// Products of f32 matrices whose operands are rounded to bf16 (ProductPrecision::bf16): a copy of each operand in
/// bf16, then a product of bf16 matrices with sums in f32.

#include "cuda/blas.hpp"
#include "cuda/vector_access.cuh"

namespace engram::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = kPackWidth<bf16>;

/// Rows of a batch of matrices, elements apart: between rows, between matrices.
struct Rows {
  const float* data;
  std::int64_t row_stride, batch_stride;
  std::int64_t rows, length;  // of a matrix
};

/// to: rows one after the other, `packs` times kWidth elements apart. kFrom: elements of an access of the source.
template <int kFrom>
__global__ void __launch_bounds__(kThreads) round_rows(Rows from, std::int64_t packs, std::int64_t count, bf16* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t row = i / packs, column = i % packs * kWidth;
  const float* const source =
      from.data + row / from.rows * from.batch_stride + row % from.rows * from.row_stride + column;
  Pack<float, kWidth> elements;
  for (int j = 0; j < kWidth; j += kFrom) {
    Pack<float, kFrom> in{};
    if (column + j < from.length) in = load<kFrom>(source + j);
    for (int k = 0; k < kFrom; ++k) elements.value[j + k] = in.value[k];
  }
  store(to + i * kWidth, elements);  // rounds
}

/// How an operand lies once it is rounded.
struct Layout {
  Rows rows;
  std::int64_t batch;
  std::int64_t packs;  // of a row

  Layout(const Operand<float>& x, std::int64_t rows_of_op, std::int64_t columns_of_op, std::int64_t batch_of_product)
      : rows{x.data, x.row_stride, x.batch_stride, x.transposed ? columns_of_op : rows_of_op,
             x.transposed ? rows_of_op : columns_of_op},
        batch(x.batch_stride == 0 ? 1 : batch_of_product),
        packs((rows.length + kWidth - 1) / kWidth) {}

  std::int64_t pack_count() const { return batch * rows.rows * packs; }
  std::size_t bytes() const { return static_cast<std::size_t>(pack_count()) * kWidth * sizeof(bf16); }
  Operand<bf16> operand(const bf16* data, bool transposed) const {
    const std::int64_t row_stride = packs * kWidth;
    return {data, row_stride, batch == 1 ? 0 : rows.rows * row_stride, transposed};
  }
};

void round(Step& step, const Layout& layout, bf16* to) {
  constexpr int kFrom = kPackWidth<float>;
  const std::int64_t count = layout.pack_count();
  const Rows& rows = layout.rows;
  const LaunchSize size{.blocks = (count + kThreads - 1) / kThreads, .threads = kThreads};
  if (aligned_for_packs(rows.data) && rows.row_stride % kFrom == 0 && rows.batch_stride % kFrom == 0 &&
      rows.length % kFrom == 0)
    launch(step, size, round_rows<kFrom>, rows, layout.packs, count, to);
  else
    launch(step, size, round_rows<1>, rows, layout.packs, count, to);
}

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

void multiply(Step& step, const Product<float>& product) {
  if (step.products() == ProductPrecision::f32 || product.k == 0) {
    multiply_exactly(step, product);
    return;
  }
  const Layout a(product.a, product.m, product.k, product.batch), b(product.b, product.k, product.n, product.batch);
  const Workspace a_memory = step.workspace(a.bytes()), b_memory = step.workspace(b.bytes());
  round(step, a, a_memory.data<bf16>());
  round(step, b, b_memory.data<bf16>());
  multiply(step, Product<bf16, float>{.m = product.m,
                                      .n = product.n,
                                      .k = product.k,
                                      .batch = product.batch,
                                      .factor = product.factor,
                                      .a = a.operand(a_memory.data<const bf16>(), product.a.transposed),
                                      .b = b.operand(b_memory.data<const bf16>(), product.b.transposed),
                                      .write = product.write,
                                      .c = product.c,
                                      .row_stride = product.row_stride,
                                      .batch_stride = product.batch_stride});
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
