#include "cpu/gemm.hpp"

namespace engram::cpu::detail {

const bool kHaveOneDnn = false;

void gemm_onednn(const Gemm<float>& product) { gemm_eigen(product); }
std::string onednn_instructions() { return {}; }

}  // namespace engram::cpu::detail
