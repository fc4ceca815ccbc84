#include "cuda/card/nccl.hpp"

#include <dlfcn.h>

#include <array>

#include "core/error.hpp"

namespace engram::card {
namespace {

const std::string& nccl_file() {
  static const std::string name = text("libnccl.so.", NCCL_MAJOR);
  return name;
}

void* open_nccl(std::span<const std::string> files) {
  std::string why;
  for (const std::string& file : files) {
    if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    if (const char* const reason = dlerror(); reason != nullptr) why += text("\n  ", reason);
  }
  throw NotAvailable(text("ranks: device cuda must have NCCL, ", nccl_file(), " was not found", why,
                          "\n  it is in NVIDIA's package libnccl2; LD_LIBRARY_PATH names its folder"));
}

std::string version_text_of(int code) { return text(code / 10000, ".", code % 10000 / 100, ".", code % 100); }

}  // namespace

Nccl::Nccl(std::span<const std::string> files) : library_(open_nccl(files)) {
  int version = 0;
  if (GetVersion(&version) != ncclSuccess || version < NCCL_VERSION_CODE)
    throw NotAvailable(text("ranks: NCCL must be version ", version_text_of(NCCL_VERSION_CODE),
                            ", which this program was built with, or newer, got ", version_text_of(version),
                            "\n  update the package libnccl2, or build with the headers of the older one"));
}

void* Nccl::function(const char* name) const {
  if (void* const found = dlsym(library_, name); found != nullptr) return found;
  throw NotAvailable(text("ranks: ", nccl_file(), " must have the function ", name, ", which is missing"));
}

const Nccl& nccl() {
  static const Nccl library(std::array<std::string, 2>{nccl_file(), text(ENGRAM_CUDA_LIBRARIES, "/", nccl_file())});
  return library;
}

}  // namespace engram::card
