#pragma once
/// The device `cuda`: one card of this machine. All its work is in the order of one stream. A program uses one card per
/// thread: opening one makes it the card of the calling thread.

#include <cuda_runtime_api.h>

#include <memory>

#include "core/backend.hpp"
#include "cuda/card/captured_step.hpp"
#include "cuda/card/find_card.hpp"
#include "cuda/card/product_plans.hpp"
#include "cuda/card/ranges.hpp"
#include "cuda/card/staging.hpp"
#include "cuda/card/stream.hpp"
#include "cuda/card/waiting.hpp"
#include "cuda/reserved_memory.hpp"

namespace engram::card {

class CardBackend final : public Backend {
 public:
  /// Throws what find_card() does.
  explicit CardBackend(int index) : index_(index), facts_(find_card(index)) {}

  Device device() const override { return {DeviceKind::cuda, index_}; }
  void* reserve(std::size_t bytes) override;
  void release(void* data) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes, CopyKind kind) override;
  void synchronize() override;
  std::unique_ptr<Mark> mark() override;
  std::unique_ptr<Replay> capture(std::function<void()> step) override;
  void between(std::function<void()> action) override;
  bool capturing() const override { return capture_ != nullptr; }
  bool shares_host_memory() const override { return false; }
  std::size_t reserved_bytes() const override { return reserved_.bytes(); }
  bool works_behind() const override { return true; }
  bool multiplies_bf16() const override { return true; }
  bool stores_bf16() const override { return true; }
  /// Each multiprocessor takes 16 a clock: CUDA C++ Programming Guide, "Arithmetic Instructions", 8.0 to 9.0.
  double exponentials_per_second() const override { return 16 * facts_.processors * facts_.clock; }

  KernelObserver* profiler() override { return profiler_listens() ? &ranges_ : nullptr; }

  cudaStream_t stream() const { return stream_; }
  const CardFacts& facts() const { return facts_; }
  ProductPlans& products() { return products_; }
  /// Where the host waits for the card.
  Waiting& waiting() { return waiting_; }

 private:
  int index_;
  CardFacts facts_;
  Stream stream_;
  Waiting waiting_;
  Staging staging_{stream_, waiting_};
  ProductPlans products_{stream_};
  cuda::ReservedMemory reserved_;
  Ranges ranges_;
  Capture* capture_ = nullptr;  // while a step is captured
};

/// Throws DeviceError when it is another kind of device.
CardBackend& card_of(Backend& backend);

}  // namespace engram::card
