#include "core/error.hpp"
#include "cpu/gemm.hpp"

namespace engram::cpu {

bool multiplies_bf16() { return false; }

void gemm(const Gemm<bf16>&) { throw DeviceError("matmul: this build has no library for products of bf16 matrices"); }

}  // namespace engram::cpu
