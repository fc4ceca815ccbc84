#include "cuda/card/cublas_lt.hpp"

#include <dlfcn.h>

#include "core/error.hpp"

namespace engram::card {
namespace {

const std::string& file_name() {
  static const std::string name = text("libcublasLt.so.", CUBLAS_VER_MAJOR);
  return name;
}

/// Where the loader finds it, or where it was when this program was built.
void* open_library() {
  for (const std::string& path : {file_name(), text(ENGRAM_CUDA_LIBRARIES, "/", file_name())})
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  throw DeviceError(text("device cuda: cuBLASLt must be installed, ", file_name(), " was not found",
                         "\n  LD_LIBRARY_PATH names the folder of the CUDA Toolkit's libraries"));
}

}  // namespace

CublasLt::CublasLt() : library_(open_library()) {}

void* CublasLt::function(const char* name) const {
  if (void* const found = dlsym(library_, name); found != nullptr) return found;
  throw DeviceError(text("device cuda: ", file_name(), " must have the function ", name, ", which is missing"));
}

const CublasLt& cublas_lt() {
  static const CublasLt library;
  return library;
}

}  // namespace engram::card
