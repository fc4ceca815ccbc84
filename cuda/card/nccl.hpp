#pragma once
/// The functions of NCCL that ranks need. Like cuBLASLt (cublas_lt.hpp) it is loaded when it is needed, so that
/// programs run where it is not installed.

#include <nccl.h>

#include <span>
#include <string>

namespace engram::card {

class Nccl {
  void* const library_;
  void* function(const char* name) const;
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(function(name));
  }

 public:
  /// Loads the first of these files that can be loaded. Throws NotAvailable when none can, or when it is older than
  /// what this program was built with.
  explicit Nccl(std::span<const std::string> files);

#define ENGRAM_NCCL(name) decltype(&::nccl##name) name = find<decltype(&::nccl##name)>("nccl" #name)
  ENGRAM_NCCL(GetVersion);
  ENGRAM_NCCL(GetUniqueId);
  ENGRAM_NCCL(CommInitRankConfig);
  ENGRAM_NCCL(CommFinalize);
  ENGRAM_NCCL(CommDestroy);
  ENGRAM_NCCL(CommAbort);
  ENGRAM_NCCL(CommGetAsyncError);
  ENGRAM_NCCL(GetErrorString);
  ENGRAM_NCCL(GetLastError);
  ENGRAM_NCCL(GroupStart);
  ENGRAM_NCCL(GroupEnd);
  ENGRAM_NCCL(Send);
  ENGRAM_NCCL(Recv);
  ENGRAM_NCCL(Broadcast);
  ENGRAM_NCCL(AllGather);
#undef ENGRAM_NCCL
};

/// The library of this machine, where the loader finds it or where it was when this program was built. Loaded at the
/// first call; stays loaded.
const Nccl& nccl();

}  // namespace engram::card
