#include "cuda/simulated/backend.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "core/allocator.hpp"
#include "core/error.hpp"

namespace engram::simulated {
namespace {

class SimulatedBackend final : public Backend {
 public:
  Engine engine;

  Device device() const override { return {DeviceKind::simulated, 0}; }
  void* reserve(std::size_t bytes) override {
    void* data = ::operator new (bytes == 0 ? 1 : bytes, std::align_val_t{Allocator::kAlignment}, std::nothrow);
    if (data == nullptr)
      throw DeviceError(text("memory: the host has no ", bytes, " bytes (", bytes >> 20,
                             " MiB) left for the simulated device", "\n  a smaller batch, block or model needs less"));
    return data;
  }
  void release(void* data) noexcept override { ::operator delete (data, std::align_val_t{Allocator::kAlignment}); }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  bool stores_bf16() const override { return true; }
  void synchronize() override {}  // a launch has ended when it returns
  std::unique_ptr<Replay> capture(std::function<void()> step) override { return capture_by_calling(std::move(step)); }
};

std::unique_ptr<Backend> open(int index) {
  if (index != 0) throw DeviceError(text("device simulated: has index 0 only, got ", index));
  auto backend = std::make_unique<SimulatedBackend>();
  if (const char* order = std::getenv("ENGRAM_SIMULATED_ORDER")) backend->engine.options = parse_run_options(order);
  return backend;
}

const bool registered = register_backend(DeviceKind::simulated, &open);

}  // namespace

Engine& engine_of(Backend& backend) {
  if (backend.device().kind != DeviceKind::simulated)
    throw DeviceError(text("launch: the step's device must be simulated, got ", backend.device()));
  return static_cast<SimulatedBackend&>(backend).engine;
}

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
