#pragma once
/// Products of plain row-major matrices, for the kernels of this folder: by blocks of sums in registers
/// (register_product.hpp), those of a vector by Eigen, and without AVX-512 large ones of f32 by oneDNN where the build
/// has it. All run on the calling thread; parallel_gemm cuts the result by its shape, so the bits do not depend on the
/// number of threads.

#include <cstdint>
#include <string>

#include "core/kernels/matmul.hpp"

namespace engram::cpu {

using kernels::Transpose;

/// c[m, n] (set or add) factor op(a)[m, k] op(b)[k, n]. The strides count elements between
/// stored rows: a is [m, k], or [k, m] when transposed. k == 0 gives zeros.
template <class T>
struct Gemm {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  std::int64_t m = 0, n = 0, k = 0;
  T factor = 1;
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  Write write = Write::set;
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

/// By what is fastest for the size; one thread.
void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);
/// gemm() on all threads.
void parallel_gemm(const Gemm<float>& product);
void parallel_gemm(const Gemm<double>& product);

/// By Eigen always: a second opinion for the tests.
void gemm_eigen(const Gemm<float>& product);
void gemm_eigen(const Gemm<double>& product);

/// What large f32 products choose when they run: "oneDNN with avx512"; empty where they choose nothing.
std::string gemm_instructions();

namespace detail {
/// Defined by gemm_onednn.cpp or, in builds without it, by gemm_without_onednn.cpp.
extern const bool kHaveOneDnn;
void gemm_onednn(const Gemm<float>& product);
std::string onednn_instructions();
}  // namespace detail

}  // namespace engram::cpu
