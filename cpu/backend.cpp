#include "core/backend.hpp"

#include <omp.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/allocator.hpp"
#include "core/error.hpp"
#include "cpu/instruction_level.hpp"

namespace engram::cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  Device device() const override { return {DeviceKind::cpu, 0}; }
  void* reserve(std::size_t bytes) override {
    void* data = ::operator new (bytes == 0 ? 1 : bytes, std::align_val_t{Allocator::kAlignment}, std::nothrow);
    if (data == nullptr)
      throw DeviceError(text("memory: the host has no ", bytes, " bytes (", bytes >> 20, " MiB) left",
                             "\n  a smaller batch, block or model needs less"));
    return data;
  }
  void release(void* data) noexcept override { ::operator delete (data, std::align_val_t{Allocator::kAlignment}); }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  std::unique_ptr<Replay> capture(std::function<void()> step) override {
    class Call final : public Replay {
     public:
      explicit Call(std::function<void()> function) : function_(std::move(function)) {}
      void run() override { function_(); }

     private:
      std::function<void()> function_;
    };
    step();
    return std::make_unique<Call>(std::move(step));
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
