#pragma once
/// A device that takes memory and computes nothing: what a step of any size needs is counted by running it there.
/// Blocks are addresses without memory behind them (core/untouched_memory.hpp).

#include <memory>
#include <utility>

#include "core/backend.hpp"
#include "core/untouched_memory.hpp"

namespace engram {

class CountingBackend final : public Backend {
 public:
  /// Counts for this device, whose kernels are asked what they take and whose facts hold.
  explicit CountingBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  Device device() const override { return device_->device(); }
  void* reserve(std::size_t bytes) override { return memory_.take(bytes); }
  void release(void* data) noexcept override { memory_.give_back(data); }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind kind) override;
  void synchronize() override {}
  std::unique_ptr<Replay> capture(std::function<void()> step) override { return capture_by_calling(std::move(step)); }
  bool computes() const override { return false; }
  Backend& device_backend() override { return *device_; }

  bool works_behind() const override { return device_->works_behind(); }
  bool multiplies_bf16() const override { return device_->multiplies_bf16(); }
  bool keeps_attention() const override { return device_->keeps_attention(); }
  bool stores_bf16() const override { return device_->stores_bf16(); }
  int threads() const override { return device_->threads(); }
  void set_threads(int count) override { device_->set_threads(count); }

 private:
  std::unique_ptr<Backend> device_;
  UntouchedMemory memory_;
};

}  // namespace engram
