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

template <class T, class A, class B>
void multiply(View<T>& c, const A& a, const B& b, T factor, Write write) {
  if (write == Write::add)
    c.noalias() += factor * (a * b);
  else
    c.noalias() = factor * (a * b);
}

template <class T>
void by_eigen(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return;
  const bool ta = g.transpose_a == Transpose::yes;
  const bool tb = g.transpose_b == Transpose::yes;
  const View<const T> a(g.a, ta ? g.k : g.m, ta ? g.m : g.k, Eigen::OuterStride<>(g.a_stride));
  const View<const T> b(g.b, tb ? g.n : g.k, tb ? g.k : g.n, Eigen::OuterStride<>(g.b_stride));
  View<T> c(g.c, g.m, g.n, Eigen::OuterStride<>(g.c_stride));
  if (g.k == 0) {
    if (g.write == Write::set) c.setZero();
  } else if (ta && tb) {
    multiply<T>(c, a.transpose(), b.transpose(), g.factor, g.write);
  } else if (ta) {
    multiply<T>(c, a.transpose(), b, g.factor, g.write);
  } else if (tb) {
    multiply<T>(c, a, b.transpose(), g.factor, g.write);
  } else {
    multiply<T>(c, a, b, g.factor, g.write);
  }
}

// Below about this many multiply-adds (measured) packing costs oneDNN more than it saves.
constexpr std::int64_t kSmall = 160 * 1024;

// Multiply-adds of one piece: about a tenth of a millisecond, so that handing it out costs nothing.
constexpr std::int64_t kPiece = std::int64_t{1} << 23;

template <class T>
void in_parallel(const Gemm<T>& g) {
  if (g.m * g.n * g.k < kSmall) return gemm(g);
  // A power of two of pieces suits every usual number of threads.
  std::int64_t pieces = 2;
  while (pieces < 64 && g.m * g.n * g.k > pieces * kPiece) pieces *= 2;
  const bool by_rows = g.m >= g.n;
  const std::int64_t length = by_rows ? g.m : g.n;
  const std::int64_t chunk = std::max<std::int64_t>(16, ((length + pieces - 1) / pieces + 7) / 8 * 8);
  parallel_items_on_threads((length + chunk - 1) / chunk, [&](std::int64_t item, int) {
    const std::int64_t begin = item * chunk, end = std::min(length, begin + chunk);
    Gemm<T> piece = g;
    if (by_rows) {
      piece.m = end - begin;
      piece.a += g.transpose_a == Transpose::yes ? begin : begin * g.a_stride;
      piece.c += begin * g.c_stride;
    } else {
      piece.n = end - begin;
      piece.b += g.transpose_b == Transpose::yes ? begin * g.b_stride : begin;
      piece.c += begin;
    }
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

const char* gemm_library() { return detail::kHaveOneDnn ? "oneDNN" : "Eigen"; }

}  // namespace engram::cpu
