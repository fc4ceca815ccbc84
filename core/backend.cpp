#include "core/backend.hpp"

#include <array>
#include <chrono>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

// Filled before main by static initialisers, constant afterwards.
std::array<BackendFactory, kDeviceKinds>& factories() {
  static std::array<BackendFactory, kDeviceKinds> table{};
  return table;
}

class Call final : public Replay {
 public:
  explicit Call(std::function<void()> function) : function_(std::move(function)) {}
  void run() override { function_(); }

 private:
  std::function<void()> function_;
};

class HostMark final : public Mark {
 public:
  double seconds_since(const Mark& earlier) const override {
    const auto* const other = dynamic_cast<const HostMark*>(&earlier);
    if (other == nullptr) throw Error("mark: both must be of one backend");
    return std::chrono::duration<double>(time_ - other->time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<Mark> Backend::mark() {
  synchronize();
  return std::make_unique<HostMark>();
}

std::unique_ptr<Replay> capture_by_calling(std::function<void()> step) {
  step();
  return std::make_unique<Call>(std::move(step));
}

bool register_backend(DeviceKind kind, BackendFactory factory) {
  factories()[static_cast<int>(kind)] = factory;
  return true;
}

std::unique_ptr<Backend> open_backend(Device device) {
  if (const BackendFactory factory = factories()[static_cast<int>(device.kind)]) return factory(device.index);
  std::string built;
  for (int kind = 0; kind < kDeviceKinds; ++kind)
    if (factories()[kind] != nullptr)
      built += (built.empty() ? "" : ", ") + std::string(name_of(static_cast<DeviceKind>(kind)));
  throw NotAvailable(text("device ", device, ": this build has no backend for it; it has: ", built,
                          "\n  --device cpu works everywhere"));
}

}  // namespace engram
