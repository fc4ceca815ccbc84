#pragma once
/// A device that takes memory and computes nothing: what a step of any size needs is counted by running it there.
/// Blocks are addresses without memory behind them, which the system gives a zero page where somebody looks.

#include <map>
#include <memory>
#include <utility>

#include "core/backend.hpp"

namespace engram {

class CountingBackend final : public Backend {
 public:
  /// Counts for this device, whose kernels are asked what they take and whose facts hold.
  explicit CountingBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}
  ~CountingBackend() override;
  CountingBackend(const CountingBackend&) = delete;
  CountingBackend& operator=(const CountingBackend&) = delete;

  Device device() const override { return device_->device(); }
  /// Throws OutOfMemory where the system has no addresses left, or promises no more memory than it has.
  void* reserve(std::size_t bytes) override;
  void release(void* data) noexcept override;
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
  std::map<void*, std::size_t> blocks_;
};

}  // namespace engram
