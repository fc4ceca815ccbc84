#include "core/backend.hpp"

#include <omp.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/allocator.hpp"
#include "core/error.hpp"
#include "cpu/bf16_product.hpp"
#include "cpu/gemm.hpp"
#include "cpu/instruction_level.hpp"

namespace engram::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Blocks from here on begin at a huge page, so that all of them is in such pages.
constexpr std::size_t kLargeBlock = std::size_t{32} << 20;

/// Asks for 2 MiB pages inside a large block, for fewer entries of the address tables: a row of 1024 floats is a 4 KiB
/// page, and rows that are read anywhere in a large table would miss those tables every time. Only a hint, where the
/// system knows it.
void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

class CpuBackend final : public Backend {
 public:
  Device device() const override { return {DeviceKind::cpu, 0}; }
  void* reserve(std::size_t bytes) override {
    static_assert(kHugePage % Allocator::kAlignment == 0);
    const std::size_t alignment = bytes >= kLargeBlock ? kHugePage : Allocator::kAlignment;
    void* data = nullptr;
    if (posix_memalign(&data, alignment, std::max<std::size_t>(bytes, 1)) != 0)
      throw OutOfMemory(text("memory: the host has no ", bytes, " bytes (", bytes >> 20, " MiB) left",
                             "\n  a smaller batch, block or model needs less"));
    prefer_huge_pages(data, bytes);
    return data;
  }
  void release(void* data) noexcept override { std::free(data); }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  std::unique_ptr<Replay> capture(std::function<void()> step) override { return capture_by_calling(std::move(step)); }
  bool keeps_attention() const override { return true; }
  bool multiplies_bf16() const override {
    // Of a portable build the module's kernels are at work, not the program's own.
    return cpu::multiplies_bf16() ||
           (use_best_instructions() == "avx512" && cpu::useful_bf16_instructions() != cpu::Bf16Instructions::none);
  }
  std::string instructions() const override {
    const std::string products = gemm_instructions();
    return text(use_best_instructions(), products.empty() ? "" : ", ", products);
  }
  int threads() const override { return omp_get_max_threads(); }
  void set_threads(int count) override { omp_set_num_threads(count); }
};

std::unique_ptr<Backend> open(int index) {
  if (index != 0) throw DeviceError(text("device cpu: has index 0 only, got ", index));
  use_best_instructions();
  return std::make_unique<CpuBackend>();
}

const bool registered = register_backend(DeviceKind::cpu, &open);

}  // namespace
}  // namespace engram::cpu
