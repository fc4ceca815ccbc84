#include "cuda/card/backend.hpp"

#include <utility>

#include "core/error.hpp"
#include "cuda/card/check.hpp"
#include "cuda/card/launch.hpp"

namespace engram::card {
namespace {

std::string mebibytes(std::size_t bytes) { return text((bytes + (1 << 20) - 1) >> 20, " MiB"); }

}  // namespace

void* CardBackend::reserve(std::size_t bytes) {
  if (capturing())
    throw DeviceError(text("memory: a captured step must find its memory in the arena, asked for ", bytes));
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes == 0 ? 1 : bytes);
  if (code != cudaErrorMemoryAllocation) {
    check(code, "memory");
    reserved_.add(data, bytes);
    return data;
  }
  (void)cudaGetLastError();
  std::size_t free = 0, total = 0;
  (void)cudaMemGetInfo(&free, &total);
  throw OutOfMemory(text("memory: ", device(), " (", facts_.name, ") must have ", mebibytes(bytes), " free, got ",
                         mebibytes(free), " of ", mebibytes(total),
                         "\n  less is needed with a larger training.split, a smaller training.batch or training.block; "
                         "nvidia-smi shows what other programs take"));
}

void CardBackend::release(void* data) noexcept {
  reserved_.remove(data);
  (void)cudaFree(data);
}

void CardBackend::copy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  if (bytes == 0) return;
  if (kind == CopyKind::device_to_device) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy on the card");
    return;
  }
  if (capturing()) throw DeviceError("copy: a captured step must not read or write memory of the host");
  if (kind == CopyKind::host_to_device) {
    staging_.copy_to_card(to, from, bytes);
  } else {
    // The copy waits for the card by itself, where nobody would look after the other ranks.
    if (waiting_.is_watched()) synchronize();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the card");
    synchronize();
  }
}

void CardBackend::synchronize() {
  if (capturing()) throw DeviceError("synchronize: a captured step must not wait for the card");
  waiting_.wait_for(stream_);
}

std::unique_ptr<Mark> CardBackend::mark() {
  if (capturing()) throw DeviceError("mark: a captured step has no place in time");
  return std::make_unique<TimedEvent>(stream_);
}

std::unique_ptr<Replay> CardBackend::capture(std::function<void()> step) {
  Capture capture(stream_);
  struct Present {
    Capture*& place;
    ~Present() { place = nullptr; }
  } const present{capture_ = &capture};
  step();
  capture_ = nullptr;
  auto captured = capture.finish();
  if (captured != nullptr) captured->run();
  return captured;
}

void CardBackend::between(std::function<void()> action) {
  if (capturing())
    capture_->between(std::move(action));
  else
    action();
}

CardBackend& card_of(Backend& backend) {
  if (backend.device().kind != DeviceKind::cuda)
    throw DeviceError(text("launch: the step's device must be cuda, got ", backend.device()));
  return static_cast<CardBackend&>(backend.device_backend());
}

cudaStream_t stream_of(Backend& backend) { return card_of(backend).stream(); }
std::size_t shared_bytes_of(Backend& backend) { return card_of(backend).facts().shared_bytes; }
bool has_warpgroup_products(Backend& backend) { return card_of(backend).facts().warpgroup_products; }

namespace {

std::unique_ptr<Backend> open(int index) { return std::make_unique<CardBackend>(index); }

const bool registered = register_backend(DeviceKind::cuda, &open);

}  // namespace
}  // namespace engram::card
