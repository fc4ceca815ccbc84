#include <dnnl.h>

#include <utility>

#include "core/error.hpp"
#include "core/held_signals.hpp"
#include "cpu/gemm.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu::detail {

const bool kHaveOneDnn = true;

void gemm_onednn(const Gemm<float>& g) {
  const OneThread alone;
  const HeldSignals held;
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a == Transpose::yes ? 'T' : 'N', g.transpose_b == Transpose::yes ? 'T' : 'N', g.m, g.n,
                 g.k, g.factor, g.a, g.a_stride, g.b, g.b_stride, g.write == Write::add ? 1.0f : 0.0f, g.c, g.c_stride);
  if (status == dnnl_out_of_memory)
    throw OutOfMemory(
        text("memory: oneDNN found none for the product [", g.m, ", ", g.k, "] x [", g.k, ", ", g.n, "]"));
  if (status != dnnl_success)
    throw DeviceError(text("matmul: oneDNN refused [", g.m, ", ", g.k, "] x [", g.k, ", ", g.n, "], status ",
                           static_cast<int>(status)));
}

std::string onednn_instructions() {
  const auto chosen = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  // Each has the bits of those before it. Products of f32 make no difference between what comes after avx512_core.
  constexpr std::pair<const char*, unsigned> kLevels[] = {{"avx512", dnnl_cpu_isa_avx512_core},
                                                          {"avx2", dnnl_cpu_isa_avx2},
                                                          {"avx", dnnl_cpu_isa_avx},
                                                          {"sse41", dnnl_cpu_isa_sse41}};
  for (const auto& [name, level] : kLevels)
    if ((chosen & level) == level) return text("oneDNN with ", name);
  return "oneDNN";
}

}  // namespace engram::cpu::detail
