#include "cuda/blas.hpp"

#include "core/error.hpp"
#include "cuda/card/backend.hpp"
#include "cuda/card/check.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

template <class T>
constexpr cudaDataType_t kType = CUDA_R_32F;
template <>
constexpr cudaDataType_t kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType_t kType<bf16> = CUDA_R_16BF;

/// Whether op(x_i) for i = 0, 1, ... lie one after the other along the inner axis, as one long operand.
template <class T>
bool continues_inside(const Operand<T>& x, bool rows_are_inner, std::int64_t k) {
  return rows_are_inner && x.batch_stride == k * x.row_stride;
}

/// Products that are added up are one product with a longer inner axis where the operands allow it.
template <class T, class Out>
Product<T, Out> merged(Product<T, Out> p) {
  if (p.batch > 1 && p.batch_stride == 0 && continues_inside(p.a, p.a.transposed, p.k) &&
      continues_inside(p.b, !p.b.transposed, p.k)) {
    p.k *= p.batch;
    p.batch = 1;
  }
  return p;
}

template <class T, class Out>
void clear(Step& step, const Product<T, Out>& p) {
  const std::size_t pitch = static_cast<std::size_t>(p.row_stride) * sizeof(Out);
  for (std::int64_t i = 0; i < p.batch; ++i)
    card::check(cudaMemset2DAsync(p.c + i * p.batch_stride, pitch, 0, static_cast<std::size_t>(p.n) * sizeof(Out),
                                  static_cast<std::size_t>(p.m), card::card_of(step.backend()).stream()),
                "matmul");
}

template <class T, class Out>
void multiply_on_card(Step& step, const Product<T, Out>& given) {
  if (given.m == 0 || given.n == 0 || given.batch == 0 || !step.computes()) return;
  if (given.k == 0) {
    if (given.write == Write::set) clear(step, given);
    return;
  }
  const Product<T, Out> p = merged(given);
  // The library counts along columns: it sees every matrix transposed, so c^T = op(b)^T op(a)^T.
  card::LibraryProduct q{.in = kType<T>,
                         .out = kType<Out>,
                         .m = p.n,
                         .n = p.m,
                         .k = p.k,
                         .batch = p.batch,
                         .transpose_a = p.b.transposed,
                         .transpose_b = p.a.transposed,
                         .a_leading = p.b.row_stride,
                         .b_leading = p.a.row_stride,
                         .c_leading = p.row_stride,
                         .a_stride = p.b.batch_stride,
                         .b_stride = p.a.batch_stride,
                         .c_stride = p.batch_stride,
                         .a = p.b.data,
                         .b = p.a.data,
                         .c = p.c,
                         .factor = p.factor,
                         .add = p.write == Write::add};
  card::ProductPlans& library = card::card_of(step.backend()).products();
  if (p.batch == 1 || p.batch_stride != 0) {
    library.multiply(q);
    return;
  }
  q.batch = 1;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    q.a = p.b.data + i * p.b.batch_stride;
    q.b = p.a.data + i * p.a.batch_stride;
    library.multiply(q);
    q.add = true;
  }
}

}  // namespace

void multiply_exactly(Step& step, const Product<float>& product) { multiply_on_card(step, product); }
void multiply(Step& step, const Product<double>& product) { multiply_on_card(step, product); }
void multiply(Step& step, const Product<bf16, float>& product) { multiply_on_card(step, product); }
void multiply(Step& step, const Product<bf16>& product) { multiply_on_card(step, product); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
