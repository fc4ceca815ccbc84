#include "cpu/gemm.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "cpu/parallel.hpp"
#include "cpu/register_product.hpp"

namespace engram::cpu {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using View = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix<std::remove_const_t<T>>, Matrix<T>>, 0,
                        Eigen::OuterStride<>>;

template <class T>
void by_eigen(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return;
  const bool ta = g.transpose_a == Transpose::yes;
  const bool tb = g.transpose_b == Transpose::yes;
  const View<const T> a(g.a, ta ? g.k : g.m, ta ? g.m : g.k, Eigen::OuterStride<>(g.a_stride));
  const View<const T> b(g.b, tb ? g.n : g.k, tb ? g.k : g.n, Eigen::OuterStride<>(g.b_stride));
  View<T> c(g.c, g.m, g.n, Eigen::OuterStride<>(g.c_stride));
  // Adding is the only form: Eigen sets large products to zero first as well, and half as many take half the time to
  // build.
  if (g.write == Write::set) c.setZero();
  if (g.k == 0) return;
  if (ta && tb)
    c.noalias() += g.factor * (a.transpose() * b.transpose());
  else if (ta)
    c.noalias() += g.factor * (a.transpose() * b);
  else if (tb)
    c.noalias() += g.factor * (a * b.transpose());
  else
    c.noalias() += g.factor * (a * b);
}

/// By the register blocks of register_product.hpp.
template <class T>
void by_registers(const Gemm<T>& g) {
  const bool turned = g.transpose_a == Transpose::yes;
  multiply_pieces<T>({.m = g.m,
                      .n = g.n,
                      .k = g.k,
                      .factor = g.factor,
                      .a = g.a,
                      .a_row = turned ? 1 : g.a_stride,
                      .a_inner = turned ? g.a_stride : 1,
                      .b = g.b,
                      .b_stride = g.b_stride,
                      .b_transposed = g.transpose_b == Transpose::yes,
                      .c = g.c,
                      .c_stride = g.c_stride,
                      .write = g.write});
}

// Whether a product is one of those that oneDNN is faster with than our own blocks, which pack little: with AVX-512
// none is, with AVX2 those of more than about 4 million multiply-adds (docs/measurements/tried.md).
bool is_for_library(const Gemm<float>& g) {
#if defined(__AVX512F__)
  constexpr bool kFaster = false;
#else
  constexpr bool kFaster = true;
#endif
  return kFaster && detail::kHaveOneDnn && g.m * g.n * g.k > std::int64_t{1} << 22;
}

/// A matrix times a vector reads the matrix once: nothing for blocks to win.
template <class T>
bool one_vector(const Gemm<T>& g) {
  return g.m <= 1 || g.n <= 1;
}

// Fewer multiply-adds than this are not worth waking other threads.
constexpr std::int64_t kOneThread = 160 * 1024;
// Multiply-adds of one piece: about a tenth of a millisecond, so that handing it out costs nothing.
constexpr std::int64_t kPiece = std::int64_t{1} << 23;
// A piece copies its rows of a and its columns of b: the shorter its sides, the more copying for each multiply-add.
constexpr std::int64_t kShortestSide = 64;

/// One side of c in equal pieces of whole vectors.
struct Cuts {
  std::int64_t length, pieces = 1;
  std::int64_t piece() const { return ((length + pieces - 1) / pieces + 7) / 8 * 8; }
  std::int64_t count() const { return (length + piece() - 1) / piece(); }
};

template <class T>
void in_parallel(const Gemm<T>& g) {
  if (g.m * g.n * g.k < kOneThread) return gemm(g);
  // A power of two of pieces suits every usual number of threads; cutting the longer side keeps them square.
  Cuts rows{g.m}, columns{g.n};
  const auto wanted = [&](std::int64_t pieces) { return pieces < 2 || g.m * g.n * g.k > pieces * kPiece; };
  for (std::int64_t pieces = 1; pieces < 64 && wanted(pieces); pieces *= 2) {
    Cuts& longer = rows.piece() >= columns.piece() ? rows : columns;
    if (pieces > 1 && longer.piece() < 2 * kShortestSide) break;
    longer.pieces *= 2;
  }
  parallel_items_on_threads(rows.count() * columns.count(), [&](std::int64_t item, int) {
    const std::int64_t row = item / columns.count() * rows.piece(), column = item % columns.count() * columns.piece();
    Gemm<T> piece = g;
    piece.m = std::min(rows.piece(), g.m - row);
    piece.n = std::min(columns.piece(), g.n - column);
    piece.a += g.transpose_a == Transpose::yes ? row : row * g.a_stride;
    piece.b += g.transpose_b == Transpose::yes ? column * g.b_stride : column;
    piece.c += row * g.c_stride + column;
    gemm(piece);
  });
}

}  // namespace

void gemm_eigen(const Gemm<float>& product) { by_eigen(product); }
void gemm_eigen(const Gemm<double>& product) { by_eigen(product); }

void gemm(const Gemm<float>& g) {
  if (one_vector(g)) return by_eigen(g);
  if (is_for_library(g)) return detail::gemm_onednn(g);
  by_registers(g);
}
void gemm(const Gemm<double>& g) { one_vector(g) ? by_eigen(g) : by_registers(g); }

void parallel_gemm(const Gemm<float>& g) { in_parallel(g); }
void parallel_gemm(const Gemm<double>& g) { in_parallel(g); }

std::string gemm_instructions() { return detail::onednn_instructions(); }

}  // namespace engram::cpu
