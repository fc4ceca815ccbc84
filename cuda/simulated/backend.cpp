#include "cuda/simulated/backend.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/allocator.hpp"
#include "core/error.hpp"
#include "core/launch_count.hpp"
#include "core/untouched_memory.hpp"
#include "cuda/launch_size.hpp"
#include "cuda/warpgroup_choice.hpp"

namespace engram::simulated {
namespace {

/// A captured step: the work that was handed over, to be done again.
class Captured final : public Replay {
 public:
  static constexpr std::size_t kBytesOfNode = 4096;  // about what a card's driver takes

  /// Takes its memory from `bytes_taken`, which must outlive it.
  Captured(const Reservations& reservations, std::vector<CapturedWork> work, std::size_t& bytes_taken)
      : reservations_(&reservations), work_(std::move(work)), bytes_taken_(&bytes_taken) {
    *bytes_taken_ += bytes();
  }
  ~Captured() override { *bytes_taken_ -= bytes(); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  void run() override {
    for (const CapturedWork& one : work_) {
      if (const std::string mistake = one.addresses.mistake(*reservations_); !mistake.empty())
        throw DeviceError("replay: " + mistake);
      one.run();
    }
  }
  std::size_t nodes() const override { return work_.size(); }

 private:
  const Reservations* reservations_;
  std::size_t bytes() const { return work_.size() * kBytesOfNode; }

  std::vector<CapturedWork> work_;
  std::size_t* bytes_taken_;
};

class SimulatedBackend final : public Backend {
 public:
  Engine engine;

  Device device() const override { return {DeviceKind::simulated, 0}; }
  void* reserve(std::size_t bytes) override {
    if (engine.capturing())
      throw DeviceError(text("memory: a captured step must find its memory in the arena, asked for ", bytes));
    void* data = nullptr;
    if (engine.costs.samples())
      data = untouched_.take(bytes);
    else if (bytes + taken() <= memory_limit)
      data = ::operator new (bytes == 0 ? 1 : bytes, std::align_val_t{Allocator::kAlignment}, std::nothrow);
    if (data == nullptr)
      throw OutOfMemory(text("memory: the simulated device must have ", bytes, " bytes (", bytes >> 20,
                             " MiB) left, got less", "\n  a smaller batch, block or model needs less"));
    engine.reservations.add(data, bytes);
    return data;
  }
  void release(void* data) noexcept override {
    const std::size_t bytes = engine.reservations.remove(data);
    if (engine.capturing()) given_back_ += std::max<std::size_t>(bytes, 1);  // capture() throws; this must not
    if (!untouched_.give_back(data)) ::operator delete (data, std::align_val_t{Allocator::kAlignment});
  }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind kind) override {
    if (bytes == 0) return;
    if (kind == CopyKind::device_to_device) {
      const std::array<const void*, 2> addresses{to, from};
      engine.start([this, to, from, bytes] { copy_inside(to, from, bytes); }, std::as_bytes(std::span(addresses)));
      return;
    }
    if (engine.capturing()) throw DeviceError("copy: a captured step must not read or write memory of the host");
    std::memcpy(to, from, bytes);
  }
  void synchronize() override {  // a launch has ended when it returns
    if (engine.capturing()) throw DeviceError("synchronize: a captured step must not wait for the device");
  }
  std::unique_ptr<Replay> capture(std::function<void()> step) override {
    engine.begin_capture();
    given_back_ = 0;
    try {
      step();
    } catch (...) {
      engine.captured();
      throw;
    }
    auto captured = std::make_unique<Captured>(engine.reservations, engine.captured(), captured_bytes_);
    if (given_back_ > 0)
      throw DeviceError(text("memory: a captured step must not give back memory of the device, got ", given_back_,
                             " bytes\n  a card ends the capture for it"));
    if (taken() > memory_limit) return nullptr;
    captured->run();
    return captured;
  }
  void between(std::function<void()> action) override { engine.start_uncounted(std::move(action)); }
  // It does not, but what holds on a card is to be found out here.
  bool works_behind() const override { return true; }
  bool multiplies_bf16() const override { return true; }
  bool stores_bf16() const override { return true; }

  bool capturing() const override { return engine.capturing(); }
  std::size_t reserved_bytes() const override { return engine.reservations.bytes(); }
  std::size_t memory_limit = SIZE_MAX;
  std::size_t shared_limit = cuda::kMostSharedBytes;
  bool warpgroup_products = true;
  int share_blocks = cuda::kShareBlocks;

 private:
  std::size_t taken() const { return engine.reservations.bytes() + captured_bytes_; }
  void copy_inside(void* to, const void* from, std::size_t bytes) {
    if (engine.costs.wanted()) {
      LaunchCost cost{.place = "copy", .launches = 1};
      cost.distinct_read_bytes = cost.distinct_written_bytes = static_cast<std::int64_t>(bytes);
      engine.costs.add(std::move(cost));
    }
    // Where results mean nothing, what is small may be more than numbers.
    constexpr std::size_t kMostSampled = std::size_t{1} << 20;
    if (!engine.costs.samples() || bytes <= kMostSampled) std::memcpy(to, from, bytes);
  }

  UntouchedMemory untouched_;
  std::size_t captured_bytes_ = 0;
  std::size_t given_back_ = 0;  // while a step was captured
};

std::unique_ptr<Backend> open(int index) {
  if (index != 0) throw DeviceError(text("device simulated: has index 0 only, got ", index));
  auto backend = std::make_unique<SimulatedBackend>();
  if (const char* order = std::getenv("ENGRAM_SIMULATED_ORDER")) backend->engine.options = parse_run_options(order);
  backend->warpgroup_products = cuda::takes_warpgroups();
  return backend;
}

const bool registered = register_backend(DeviceKind::simulated, &open);

SimulatedBackend& simulated(Backend& backend) {
  if (backend.device().kind != DeviceKind::simulated)
    throw DeviceError(text("launch: the step's device must be simulated, got ", backend.device()));
  return static_cast<SimulatedBackend&>(backend.device_backend());
}

}  // namespace

namespace {

LaunchCounter* counter_of(Backend& backend) {
  if (backend.device().kind != DeviceKind::simulated || !kernels_tell_accesses()) return nullptr;
  return &engine_of(backend).costs;
}
std::int64_t launches_of(Backend& backend) {
  return backend.device().kind == DeviceKind::simulated ? engine_of(backend).started() : -1;
}
const bool counts_launches = (count_launches_of = &launches_of) != nullptr;
const bool counts = (find_launch_counter = &counter_of) != nullptr;

}  // namespace

Engine& engine_of(Backend& backend) { return simulated(backend).engine; }
std::size_t& memory_limit_of(Backend& backend) { return simulated(backend).memory_limit; }
std::size_t& shared_limit_of(Backend& backend) { return simulated(backend).shared_limit; }
bool& warpgroup_products_of(Backend& backend) { return simulated(backend).warpgroup_products; }
int& share_blocks_of(Backend& backend) { return simulated(backend).share_blocks; }
std::int64_t warpgroup_product_count(Backend& backend) { return engine_of(backend).warpgroup_products(); }

RunOptions parse_run_options(const char* order) {
  const std::string_view name = order;
  RunOptions options;
  if (name == "forward") return options;
  if (name == "reversed") return {.order = RunOrder::reversed};
  options.order = RunOrder::shuffled;
  if (name == "shuffled") return options;
  constexpr std::string_view kWithSeed = "shuffled:";
  const char* end = name.data() + name.size();
  if (name.starts_with(kWithSeed)) {
    const auto [stop, error] = std::from_chars(name.data() + kWithSeed.size(), end, options.seed);
    if (error == std::errc() && stop == end) return options;
  }
  throw UsageError(
      text("ENGRAM_SIMULATED_ORDER: must be forward, reversed, shuffled or shuffled:SEED, got '", name, "'"));
}

}  // namespace engram::simulated
