#include "cpu/gemm.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "cpu/parallel.hpp"

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

// Below about this many multiply-adds (measured on a Xeon and on a Zen 3) packing costs oneDNN more than it saves.
#if defined(__AVX512F__)
constexpr std::int64_t kSmall = 160 * 1024;
#else
constexpr std::int64_t kSmall = 16 * 1024;
#endif

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
  if (detail::kHaveOneDnn && g.k > 0 && g.m > 1 && g.n > 1 && g.m * g.n * g.k >= kSmall)
    detail::gemm_onednn(g);
  else
    by_eigen(g);
}
void gemm(const Gemm<double>& g) { by_eigen(g); }

void parallel_gemm(const Gemm<float>& g) { in_parallel(g); }
void parallel_gemm(const Gemm<double>& g) { in_parallel(g); }

std::string gemm_instructions() { return detail::onednn_instructions(); }

const char* gemm_library() { return detail::kHaveOneDnn ? "oneDNN" : "Eigen"; }

}  // namespace engram::cpu
