#include <dnnl.h>

#include "core/error.hpp"
#include "cpu/gemm.hpp"
#include "cpu/parallel.hpp"

// Exported by the library like dnnl_sgemm, with the same arguments, but missing in its headers.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transpose_a, char transpose_b, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float factor, const std::uint16_t* a, dnnl_dim_t a_stride,
                                               const std::uint16_t* b, dnnl_dim_t b_stride, float keep, float* c,
                                               dnnl_dim_t c_stride);

namespace engram::cpu {

bool multiplies_bf16() {
  // An instruction set's bits include those of the sets that it extends.
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

void gemm(const Gemm<bf16>& g) {
  static_assert(sizeof(bf16) == sizeof(std::uint16_t));
  const OneThread alone;
  const dnnl_status_t status = dnnl_gemm_bf16bf16f32(
      g.transpose_a == Transpose::yes ? 'T' : 'N', g.transpose_b == Transpose::yes ? 'T' : 'N', g.m, g.n, g.k, g.factor,
      &g.a->bits, g.a_stride, &g.b->bits, g.b_stride, g.write == Write::add ? 1.0f : 0.0f, g.c, g.c_stride);
  if (status != dnnl_success)
    throw DeviceError(text("matmul: oneDNN refused the bf16 product [", g.m, ", ", g.k, "] x [", g.k, ", ", g.n,
                           "], status ", static_cast<int>(status)));
}

}  // namespace engram::cpu
