#pragma once
/// The functions of cuBLASLt that products need. The library has hundreds of megabytes, which would slow the start of
/// every command down, so it is loaded when a card is opened.

#include <cublasLt.h>

namespace engram::card {

class CublasLt {
  void* const library_;
  void* function(const char* name) const;
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(function(name));
  }

 public:
  /// Throws DeviceError when the library is not found or is an older one.
  CublasLt();

#define ENGRAM_CUBLAS_LT(name) decltype(&::cublasLt##name) name = find<decltype(&::cublasLt##name)>("cublasLt" #name)
  ENGRAM_CUBLAS_LT(Create);
  ENGRAM_CUBLAS_LT(Destroy);
  ENGRAM_CUBLAS_LT(MatmulDescCreate);
  ENGRAM_CUBLAS_LT(MatmulDescDestroy);
  ENGRAM_CUBLAS_LT(MatmulDescSetAttribute);
  ENGRAM_CUBLAS_LT(MatrixLayoutCreate);
  ENGRAM_CUBLAS_LT(MatrixLayoutDestroy);
  ENGRAM_CUBLAS_LT(MatrixLayoutSetAttribute);
  ENGRAM_CUBLAS_LT(MatmulPreferenceCreate);
  ENGRAM_CUBLAS_LT(MatmulPreferenceDestroy);
  ENGRAM_CUBLAS_LT(MatmulPreferenceSetAttribute);
  ENGRAM_CUBLAS_LT(MatmulAlgoGetHeuristic);
  ENGRAM_CUBLAS_LT(Matmul);
  ENGRAM_CUBLAS_LT(GetStatusName);
  ENGRAM_CUBLAS_LT(GetStatusString);
#undef ENGRAM_CUBLAS_LT
};

/// Loaded at the first call; stays loaded.
const CublasLt& cublas_lt();

}  // namespace engram::card
