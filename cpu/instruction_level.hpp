#pragma once
/// Which instructions the kernels use. A build for the machine it is made on (ENGRAM_NATIVE) has one set of kernels. A
/// portable build for x86-64 has plain ones in the program, and modules beside it with the same kernels for newer
/// processors; the best that the machine can run takes the slots when the CPU backend is first opened.

#include <string>

namespace engram::cpu {

/// Loads the kernels for this machine, once; later calls return the same. ENGRAM_CPU in the environment asks for a
/// level: baseline, avx2 or avx512. Returns the level in use, "native" where there is only one. Throws UsageError for a
/// level that does not exist or that the machine cannot run; a module that is missing costs a warning.
const std::string& use_best_instructions();

}  // namespace engram::cpu
